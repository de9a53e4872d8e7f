-- The engine's tables.
--
-- A job is one row in `job`: what was asked for and, once it has ended, how. While it is live a second,
-- small row in `job_live` says where it stands; claiming and renewing touch only that one, and ending the
-- job removes it. The view `jobs` shows both as the one relation people query.
--
-- Two rules keep this fast, and both are about indexes. No column that a claim changes is in an index of
-- `job_live`, and no column that a success changes is in an index of `job`: both then stay on their page.

-- Keeps `updated_at` where the statement itself did not. It runs after the update, because a trigger before it
-- would lock, and log, every row twice; and only when the dates show that nobody else kept it.
CREATE FUNCTION ode_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET updated_at = clock_timestamp() WHERE id = $1', TG_TABLE_NAME) USING NEW.id;
    RETURN NULL;
END $$;

CREATE FUNCTION ode_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('ode.retention', true), '') = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% is append-only: only retention may change or remove what it holds', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

-- Phases, the same for every pipeline. Kept beside the states so that a state without a phase cannot exist.
CREATE FUNCTION ode_phase(state text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN state IN ('complete', 'completed', 'fulfilled') THEN 'done'
        WHEN state IN ('failed', 'timed_out', 'export_failed', 'order_failed') THEN 'failed'
        WHEN state = 'cancelled' THEN 'cancelled'
    END
$$;

CREATE FUNCTION ode_reference(id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'JOB_' || to_char(
        to_timestamp(('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint / 1000) AT TIME ZONE 'UTC',
        'YYYYMMDD_HH24MISS') || '_' || right(id::text, 8)
$$;

-- A UUID of version 7 made by the database, for jobs that are created in SQL.
CREATE FUNCTION ode_new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(
        set_byte(set_byte(
            overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112),
            8, (get_byte(uuid_send(gen_random_uuid()), 8) & 63) | 128),
        'hex')::uuid
$$;

-- A job's history is the numbers of its journal entries, seven bytes each: it is written at every step, so
-- it is kept as short as it can be.
CREATE FUNCTION ode_entry(seq bigint) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT substring(int8send(seq) FROM 2)
$$;

CREATE FUNCTION ode_seq(history bytea, place integer) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x00' || encode(substring(history FROM place * 7 - 6 FOR 7), 'hex'))::bit(64)::bigint
$$;

CREATE TABLE owner (
    id          uuid PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('session', 'user', 'organisation')),
    name        text,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_key (
    id          text PRIMARY KEY,
    owner       uuid NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    name        text NOT NULL,
    secret_hash bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    used_at     timestamptz,
    revoked_at  timestamptz
);
CREATE INDEX api_key_owner ON api_key (owner);

CREATE TABLE job (
    id              uuid PRIMARY KEY,
    pipeline        text NOT NULL CHECK (pipeline IN ('xml', 'html', 'print', 'script')),
    kind            text NOT NULL CHECK (length(kind) BETWEEN 1 AND 255),
    session_id      uuid,
    user_id         uuid,
    organisation_id uuid,
    created_by      uuid,
    external_id     text CHECK (length(external_id) BETWEEN 1 AND 255),
    priority        smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000 AND 1000),
    timeout_ms      bigint CHECK (timeout_ms BETWEEN 1 AND 604800000),
    created_at      timestamptz NOT NULL DEFAULT now(),
    input           jsonb NOT NULL,
    config          jsonb,
    metadata        jsonb,
    -- How it ended; absent while it is live. These come last, so that ending a job logs only them.
    updated_at      timestamptz,
    queued_at       timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz,
    fence           integer,
    attempts        smallint,
    retries         smallint,
    retries_max     smallint,
    advance         boolean,
    state           text,
    engine_version  text,
    history         bytea,
    result          jsonb,
    error_code      text,
    error_message   text,
    error_detail    text,
    CONSTRAINT job_state_of_pipeline CHECK (state IS NULL
        OR (pipeline = 'html' AND state IN ('completed', 'failed'))
        OR (pipeline = 'xml' AND state IN ('complete', 'failed'))
        OR (pipeline = 'script' AND state IN ('completed', 'failed', 'timed_out', 'cancelled'))
        OR (pipeline = 'print' AND state IN ('fulfilled', 'export_failed', 'order_failed'))),
    CONSTRAINT job_ended_is_dated CHECK ((state IS NULL) = (finished_at IS NULL)),
    CONSTRAINT job_result_only_in_success CHECK (result IS NULL OR (state IS NOT NULL AND ode_phase(state) = 'done')),
    CONSTRAINT job_error_exactly_in_failure CHECK (
        (error_code IS NOT NULL AND error_message IS NOT NULL) = (state IS NOT NULL AND ode_phase(state) = 'failed')
        AND (error_code IS NULL) = (error_message IS NULL)),
    CONSTRAINT job_one_owner CHECK (num_nonnulls(session_id, organisation_id) <= 1)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05);
-- Each of these ends in the id, so no two entries are alike: looking for duplicates would be work for nothing.
CREATE INDEX job_session ON job (session_id, id) WITH (deduplicate_items = off) WHERE session_id IS NOT NULL;
CREATE INDEX job_user ON job (user_id, id) WITH (deduplicate_items = off) WHERE user_id IS NOT NULL;
CREATE INDEX job_organisation ON job (organisation_id, id) WITH (deduplicate_items = off)
    WHERE organisation_id IS NOT NULL;
CREATE INDEX job_creator ON job (created_by, id) WITH (deduplicate_items = off) WHERE created_by IS NOT NULL;
CREATE INDEX job_failed ON job (id) WHERE error_code IS NOT NULL;
CREATE UNIQUE INDEX job_external_id ON job
    (coalesce(organisation_id, user_id, session_id, '00000000-0000-0000-0000-000000000000'), external_id)
    WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX job_script_reference ON job (ode_reference(id)) WHERE pipeline = 'script';
CREATE TRIGGER job_touch AFTER UPDATE ON job FOR EACH ROW
    WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at AND NEW.finished_at IS NOT DISTINCT FROM OLD.finished_at)
    EXECUTE FUNCTION ode_touch();

CREATE TABLE job_live (
    id               uuid PRIMARY KEY,
    -- Whose turn it is: the owner's key, nil for the operator.
    owner            uuid NOT NULL,
    -- Priority, turned round so that the index is read in one direction.
    rank             smallint NOT NULL DEFAULT 0,
    -- As many as the handler allows, where it does not say.
    retries_max      smallint CHECK (retries_max >= 0),
    pipeline         text NOT NULL,
    -- The line it waits or runs in; none while it is held.
    lane             text CHECK (lane IN ('xml', 'html', 'print.export', 'print.order', 'script')),
    advance          boolean,
    run_at           timestamptz,
    -- When it last became eligible, where that was not at its creation.
    queued_at        timestamptz,
    -- What a claim changes comes last, so that it logs only this.
    retries          smallint NOT NULL DEFAULT 0 CHECK (retries >= 0),
    crashes          smallint NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    fence            integer NOT NULL DEFAULT 0 CHECK (fence >= 0),
    attempts         smallint NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    state            text NOT NULL,
    history          bytea NOT NULL,
    updated_at       timestamptz,
    started_at       timestamptz,
    timeout_at       timestamptz,
    lease_until      timestamptz,
    worker           uuid,
    stop_at          timestamptz,
    progress_percent smallint CHECK (progress_percent BETWEEN 0 AND 100),
    progress_step    integer CHECK (progress_step >= 0),
    progress_steps   integer CHECK (progress_steps >= 0),
    progress_message text,
    process_pid      bigint,
    CONSTRAINT job_live_state_of_pipeline CHECK (
        (pipeline = 'html' AND state IN ('pending', 'processing'))
        OR (pipeline = 'xml' AND state IN ('uploaded', 'queued', 'processing'))
        OR (pipeline = 'script' AND state IN ('pending', 'queued', 'in_progress'))
        OR (pipeline = 'print' AND state IN ('pending_export', 'exporting', 'export_complete', 'ordering', 'ordered'))),
    CONSTRAINT job_live_running_is_leased CHECK (
        (state IN ('processing', 'exporting', 'ordering', 'in_progress')) = (worker IS NOT NULL)
        AND (worker IS NULL) = (lease_until IS NULL)
        AND (worker IS NULL OR (started_at IS NOT NULL AND lane IS NOT NULL))),
    CONSTRAINT job_live_held_has_no_lane CHECK (lane IS NULL OR state NOT IN ('uploaded', 'ordered'))
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- The line: highest priority, then whose turn, then oldest (ids are in order of creation).
CREATE INDEX job_live_line ON job_live (lane, rank, owner, id) WITH (deduplicate_items = off)
    WHERE lane IS NOT NULL;
CREATE INDEX job_live_due ON job_live (run_at) WHERE lane IS NULL AND run_at IS NOT NULL;
CREATE TRIGGER job_live_touch AFTER UPDATE ON job_live FOR EACH ROW
    WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at)
    EXECUTE FUNCTION ode_touch();

-- What happened. One entry tells one step of every job that took it together, so that a batch of a thousand
-- jobs costs one row; each job keeps the numbers of its own entries in `history`.
CREATE TABLE job_journal (
    seq        bigint PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    event      text NOT NULL,
    from_state text,
    to_state   text NOT NULL,
    actor      text NOT NULL,
    jobs       uuid[] NOT NULL,
    details    jsonb
);
ALTER TABLE job_journal ALTER COLUMN jobs SET STORAGE EXTERNAL;
CREATE TRIGGER job_journal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON job_journal
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

CREATE TABLE job_artifact (
    id           uuid PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    role         text NOT NULL CHECK (role IN ('source', 'result', 'asset', 'log', 'screenshot')),
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 1024),
    storage      text NOT NULL CHECK (storage IN ('local', 's3')),
    path         text NOT NULL,
    content_type text NOT NULL,
    bytes        bigint NOT NULL CHECK (bytes > 0),
    sha256       text NOT NULL CHECK (length(sha256) = 64),
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (job_id, role, name),
    UNIQUE (storage, path)
);
CREATE TRIGGER job_artifact_append_only BEFORE UPDATE ON job_artifact
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

CREATE TABLE job_log (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id  uuid NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    attempt integer NOT NULL,
    level   text NOT NULL CHECK (level IN ('info', 'warn', 'error')),
    message text NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX job_log_job ON job_log (job_id, id);
CREATE TRIGGER job_log_append_only BEFORE UPDATE ON job_log
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- Keys under which a job was asked for: a request is known by its idempotency key, content by its dedupe key.
CREATE TABLE job_key (
    kind       text NOT NULL CHECK (kind IN ('idempotency', 'dedupe')),
    owner      uuid NOT NULL,
    key        text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    job_id     uuid NOT NULL,
    request    text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, owner, key)
);
CREATE INDEX job_key_job ON job_key (job_id);

CREATE TABLE worker (
    id          uuid PRIMARY KEY,
    host        text NOT NULL,
    pid         bigint NOT NULL,
    version     text NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    beat_at     timestamptz NOT NULL DEFAULT now(),
    -- Past this moment without a beat, it counts as lost.
    alive_until timestamptz NOT NULL,
    draining_at timestamptz,
    running     bigint NOT NULL DEFAULT 0 CHECK (running >= 0)
);

CREATE VIEW jobs WITH (security_invoker) AS
SELECT
    j.id,
    ode_reference(j.id) AS reference,
    j.pipeline,
    j.kind AS type,
    coalesce(j.state, l.state) AS state,
    coalesce(ode_phase(j.state), CASE
        WHEN l.worker IS NOT NULL THEN 'running'
        WHEN l.lane IS NOT NULL THEN 'ready'
        ELSE 'held' END) AS phase,
    j.session_id,
    j.user_id,
    j.organisation_id,
    j.created_by,
    j.external_id,
    j.priority,
    j.input,
    coalesce(j.config, '{}') AS config,
    coalesce(j.metadata, '{}') AS metadata,
    j.result,
    j.error_code,
    j.error_message,
    j.error_detail,
    -- A job that was called off in SQL ends without its counts.
    coalesce(j.attempts, l.attempts, 0) AS attempt_count,
    coalesce(j.retries, l.retries, 0) AS retry_count,
    coalesce(j.retries_max, l.retries_max, 3) AS max_retries,
    CASE WHEN ode_phase(j.state) = 'done' THEN 100 ELSE coalesce(l.progress_percent, 0) END AS progress_percent,
    l.progress_message,
    coalesce(l.progress_step, 0) AS current_step,
    coalesce(l.progress_steps, 0) AS total_steps,
    l.worker AS worker_id,
    l.process_pid,
    l.lease_until AS lease_expires_at,
    l.run_at,
    l.timeout_at,
    j.engine_version,
    j.created_at,
    CASE WHEN coalesce(j.state, l.state) = 'uploaded' OR (j.state IS NULL AND l.run_at IS NOT NULL) THEN l.queued_at
        ELSE coalesce(j.queued_at, l.queued_at, j.created_at) END AS queued_at,
    coalesce(j.started_at, l.started_at) AS started_at,
    j.finished_at,
    greatest(j.created_at, j.updated_at, j.finished_at, l.updated_at, l.started_at) AS updated_at,
    coalesce(j.history, l.history) AS history
FROM job j LEFT JOIN job_live l ON l.id = j.id;

CREATE VIEW job_events WITH (security_invoker) AS
SELECT e.seq, t.id AS job_id, e.event AS event_type, e.from_state, e.to_state, e.actor,
    e.details -> t.id::text AS meta, e.at, h.place
FROM (SELECT j.id, coalesce(j.history, l.history) AS history FROM job j LEFT JOIN job_live l ON l.id = j.id) t
CROSS JOIN LATERAL generate_series(1, octet_length(t.history) / 7) AS h (place)
JOIN job_journal e ON e.seq = ode_seq(t.history, h.place);
