-- What scripts need beside being jobs: sealed secrets, checkpoints, what each attempt ran as, what a job waits for, and
-- the names under which people query them.

-- The types that workers know, as they last published them.
CREATE TABLE script_type (
    name           text PRIMARY KEY,
    title          text NOT NULL,
    version        text NOT NULL,
    digest         text NOT NULL,
    timeout_ms     ode_timeout_ms NOT NULL,
    retries_max    ode_count NOT NULL,
    retry_delay_ms bigint NOT NULL CHECK (retry_delay_ms >= 0),
    published_at   timestamptz NOT NULL DEFAULT now()
);

-- A script has what its type says where whoever asked for it does not say. After the row is there: a trigger before it
-- would make every bulk load go row by row.
CREATE FUNCTION ode_script_defaults() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job_live l SET retries_max = coalesce(l.retries_max, t.retries_max),
        timeout_ms = coalesce(l.timeout_ms, t.timeout_ms), updated_at = clock_timestamp()
    FROM script_type t WHERE l.id = NEW.id AND t.name = l.kind;
    RETURN NULL;
END $$;
CREATE TRIGGER job_live_script_defaults AFTER INSERT ON job_live FOR EACH ROW
    WHEN (NEW.pipeline = 'script' AND (NEW.retries_max IS NULL OR NEW.timeout_ms IS NULL))
    EXECUTE FUNCTION ode_script_defaults();

-- Public halves of the keys that secrets are sealed to. The other halves are in files of the processes that open them.
CREATE TABLE seal_key (
    id         text PRIMARY KEY,
    side       text NOT NULL CHECK (side IN ('worker', 'web')),
    public     bytea NOT NULL CHECK (length(public) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz
);

-- Secrets of a job, of its input or its result. Nobody can open them who has only this.
CREATE TABLE script_secret (
    job_id      uuid NOT NULL,
    part        text NOT NULL CHECK (part IN ('input', 'result')),
    -- Sealed together with the content, so that it cannot be put under another name.
    id          uuid NOT NULL,
    key_id      text NOT NULL,
    -- The key of the content, to be opened with the key above; without it the content is noise.
    wrapped     bytea,
    content     bytea,
    -- How long a job that failed keeps them for somebody who tries it again, and a result for somebody to look.
    keep_micros bigint NOT NULL CHECK (keep_micros >= 0),
    created_at  timestamptz NOT NULL DEFAULT now(),
    shred_at    timestamptz,
    shredded_at timestamptz,
    PRIMARY KEY (job_id, part),
    CONSTRAINT script_secret_shredded CHECK (num_nulls(wrapped, content) = CASE WHEN shredded_at IS NULL THEN 0 ELSE 2 END)
);
CREATE INDEX script_secret_due ON script_secret (shred_at) WHERE shredded_at IS NULL AND shred_at IS NOT NULL;
CREATE INDEX script_secret_key ON script_secret (key_id) WHERE shredded_at IS NULL;

-- What an attempt has done for good: the next one goes on from there.
CREATE TABLE script_checkpoint (
    job_id     uuid NOT NULL,
    key        text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    data       jsonb NOT NULL,
    attempt    integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, key)
);

-- What each attempt ran, as which process, and how far it came.
CREATE TABLE script_run (
    job_id           uuid NOT NULL,
    attempt          integer NOT NULL,
    worker           uuid NOT NULL,
    host             text NOT NULL,
    version          text NOT NULL,
    digest           text NOT NULL,
    pid              bigint,
    -- A process is known by its number and the moment it began, counted by a system that has not started anew since.
    start_ticks      bigint,
    boot_id          text,
    timeout_at       timestamptz,
    steps            jsonb NOT NULL DEFAULT '[]',
    progress_percent ode_percent NOT NULL DEFAULT 0,
    progress_message text,
    current_step     ode_number NOT NULL DEFAULT 0,
    total_steps      ode_number NOT NULL DEFAULT 0,
    error_code       text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, attempt)
);

-- What a script waits for: its moment, its place in a batch, and a turn that one job at a time has.
CREATE TABLE script_order (
    job_id uuid PRIMARY KEY,
    owner  uuid NOT NULL,
    turn   text CHECK (length(turn) BETWEEN 1 AND 255),
    batch  uuid,
    place  integer NOT NULL DEFAULT 0,
    -- When it was asked to begin, whatever it waited for since.
    run_at timestamptz
);
CREATE INDEX script_order_turn ON script_order (owner, turn) WHERE turn IS NOT NULL;
CREATE INDEX script_order_batch ON script_order (batch, place) WHERE batch IS NOT NULL;

-- Which jobs must have completed before this one gets in line.
CREATE TABLE script_need (
    job_id uuid NOT NULL,
    needs  uuid NOT NULL,
    PRIMARY KEY (job_id, needs)
);
CREATE INDEX script_need_needs ON script_need (needs);

-- Who has the turn: from getting in line until the end.
CREATE TABLE script_turn (
    owner  uuid NOT NULL,
    turn   text NOT NULL,
    holder uuid NOT NULL UNIQUE,
    PRIMARY KEY (owner, turn)
);

-- With the end of a script its secrets go, and those who waited for it are to be looked at. What becomes of them is
-- decided by whoever looks: here they only come due.
CREATE FUNCTION ode_script_ended() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    waited script_order;
BEGIN
    UPDATE script_secret SET wrapped = NULL, content = NULL, shredded_at = now()
    WHERE job_id = NEW.id AND shredded_at IS NULL
        AND (keep_micros = 0 OR NEW.state <> CASE part WHEN 'input' THEN 'failed' ELSE 'completed' END);
    UPDATE script_secret SET shred_at = now() + keep_micros * interval '1 microsecond'
    WHERE job_id = NEW.id AND shredded_at IS NULL;
    UPDATE job_live SET run_at = clock_timestamp(), updated_at = clock_timestamp()
    WHERE id IN (SELECT job_id FROM script_need WHERE needs = NEW.id) AND lane IS NULL
        AND coalesce(run_at <= now(), TRUE);
    SELECT * INTO waited FROM script_order WHERE job_id = NEW.id AND turn IS NOT NULL;
    IF FOUND THEN
        DELETE FROM script_turn WHERE holder = NEW.id;
        UPDATE job_live SET run_at = clock_timestamp(), updated_at = clock_timestamp()
        WHERE id = (SELECT l.id FROM script_order o JOIN job_live l ON l.id = o.job_id
            WHERE o.owner = waited.owner AND o.turn = waited.turn AND l.lane IS NULL
                AND coalesce(l.run_at <= now(), TRUE)
                AND NOT EXISTS (SELECT 1 FROM script_need n JOIN job_live e ON e.id = n.needs WHERE n.job_id = l.id)
            ORDER BY l.priority DESC, l.id LIMIT 1)
            AND NOT EXISTS (SELECT 1 FROM script_turn t WHERE t.owner = waited.owner AND t.turn = waited.turn);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_script_ended AFTER INSERT ON job_past FOR EACH ROW WHEN (NEW.pipeline = 'script')
    EXECUTE FUNCTION ode_script_ended();

CREATE FUNCTION ode_remove_script() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM script_secret WHERE job_id = OLD.id;
    DELETE FROM script_checkpoint WHERE job_id = OLD.id;
    DELETE FROM script_run WHERE job_id = OLD.id;
    DELETE FROM script_need WHERE job_id = OLD.id;
    DELETE FROM script_order WHERE job_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_remove_script AFTER DELETE ON job_past FOR EACH ROW
    WHEN (OLD.pipeline = 'script' AND current_setting('ode.retention', true) = 'on')
    EXECUTE FUNCTION ode_remove_script();

-- The restaurant that a job is about, where its label is an id.
CREATE FUNCTION ode_restaurant(metadata jsonb) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN metadata ->> 'restaurant_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
        THEN (metadata ->> 'restaurant_id')::uuid END
$$;

-- Ways into the view below. Those by reference, restaurant, person and type have a half in each table; no claim changes
-- anything in them. What is left to do is few rows, so that the rest needs only the half over what has ended.
CREATE UNIQUE INDEX job_live_script_reference ON job_live (ode_reference(id)) WHERE pipeline = 'script';
CREATE INDEX job_past_script_reference ON job_past (ode_reference(id)) WHERE pipeline = 'script';
CREATE INDEX job_live_script_restaurant ON job_live (ode_restaurant(coalesce(metadata, '{}')), id)
    WHERE pipeline = 'script';
CREATE INDEX job_past_script_restaurant ON job_past (ode_restaurant(coalesce(metadata, '{}')), id)
    WHERE pipeline = 'script';
CREATE INDEX job_live_script_creator ON job_live (created_by, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_creator ON job_past (created_by, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_type ON job_past (kind, state, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_created ON job_past (created_at) WHERE pipeline = 'script';
CREATE INDEX job_past_script_updated ON job_past (greatest(created_at, updated_at, finished_at))
    WHERE pipeline = 'script';

CREATE VIEW script_jobs WITH (security_invoker) AS
SELECT j.id, j.reference AS job_id, j.type AS job_type, j.state AS status, j.input AS input_payload, j.result,
    j.error_message, CASE WHEN j.error_code IS NOT NULL THEN coalesce(r.error_code, j.error_code) END AS error_code,
    j.error_detail AS error_stack, j.retry_count, j.max_retries,
    coalesce((SELECT t.retry_delay_ms FROM script_type t WHERE t.name = j.type), 5000) AS retry_delay_ms,
    CASE WHEN j.state = 'pending' AND j.retry_count > 0 THEN j.run_at END AS next_retry_at,
    CASE WHEN j.phase IN ('failed', 'cancelled') THEN coalesce(r.progress_percent, 0)::smallint
        ELSE j.progress_percent END AS progress_percent,
    coalesce(j.progress_message, r.progress_message) AS progress_message,
    CASE WHEN j.finished_at IS NULL THEN j.current_step ELSE coalesce(r.current_step, 0)::integer END AS current_step,
    CASE WHEN j.finished_at IS NULL THEN j.total_steps ELSE coalesce(r.total_steps, 0)::integer END AS total_steps,
    j.created_at, j.started_at, j.finished_at AS completed_at,
    CASE WHEN j.state = 'cancelled' THEN j.finished_at END AS cancelled_at, j.updated_at,
    coalesce(j.timeout_at, r.timeout_at) AS timeout_at, coalesce(j.worker_id, r.worker)::text AS worker_id,
    coalesce(j.process_pid, r.pid) AS process_pid, j.organisation_id, ode_restaurant(j.metadata) AS restaurant_id,
    j.created_by, j.priority, j.metadata
FROM jobs j LEFT JOIN script_run r ON r.job_id = j.id AND r.attempt = j.attempt_count AND j.state <> 'pending'
WHERE j.pipeline = 'script';

CREATE VIEW script_jobs_queue_status WITH (security_invoker) AS
SELECT job_type, status, count(*) AS count,
    avg(extract(epoch FROM completed_at - started_at)) AS avg_duration_seconds,
    min(created_at) AS oldest_job, max(created_at) AS newest_job
FROM script_jobs WHERE created_at > now() - interval '24 hours'
GROUP BY job_type, status ORDER BY job_type, status;

CREATE VIEW script_jobs_failed_summary WITH (security_invoker) AS
SELECT id, job_id, job_type, error_message, error_code, retry_count, max_retries, created_at, completed_at,
    organisation_id
FROM script_jobs
WHERE status = 'failed' AND (retry_count >= max_retries OR next_retry_at IS NULL)
    AND created_at > now() - interval '7 days'
ORDER BY created_at DESC;

CREATE VIEW script_jobs_metrics WITH (security_invoker) AS
SELECT job_type,
    count(*) FILTER (WHERE status = 'completed') AS completed_count,
    count(*) FILTER (WHERE status = 'failed') AS failed_count,
    count(*) FILTER (WHERE status = 'in_progress') AS in_progress_count,
    count(*) FILTER (WHERE status IN ('pending', 'queued')) AS queued_count,
    round(100.0 * count(*) FILTER (WHERE status = 'completed')
        / nullif(count(*) FILTER (WHERE status IN ('completed', 'failed')), 0), 2) AS success_rate_percent,
    avg(extract(epoch FROM completed_at - started_at)) FILTER (WHERE status = 'completed') AS avg_duration_seconds
FROM script_jobs WHERE created_at > now() - interval '24 hours' GROUP BY job_type;

ALTER TABLE seal_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_checkpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_run ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_order ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_need ENABLE ROW LEVEL SECURITY;
ALTER TABLE script_turn ENABLE ROW LEVEL SECURITY;
CREATE POLICY see_own ON script_run FOR SELECT TO ode_api USING (ode_is_own(job_id));
GRANT SELECT ON script_type, script_run TO ode_api;

DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT bool_and(coalesce('security_invoker=true' = ANY (reloptions), FALSE)) FROM pg_class
        WHERE oid IN ('jobs'::regclass, 'script_jobs'::regclass)) THEN
        GRANT SELECT ON script_jobs, script_jobs_queue_status, script_jobs_failed_summary, script_jobs_metrics TO ode_api;
    END IF;
END $$;
