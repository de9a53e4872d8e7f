-- Who may do what on PostgreSQL, the seeds' reading views, and enqueueing from SQL.
--
-- The engine connects as the owner of these tables. A process that serves organisations may connect as a
-- member of `ode_api` instead: it then sees and makes only what belongs to the organisation named by the
-- setting `ode.organisation`, which it sets at the start of each transaction (SET LOCAL).

-- The role is the cluster's. Where it exists already, nobody needs the right to create one; and another database
-- that is just giving it up must not take it from under us, so it is held by a first grant at once.
DO $$ BEGIN
    FOR try IN 1..3 LOOP
        BEGIN
            IF to_regrole('ode_api') IS NULL THEN
                CREATE ROLE ode_api NOLOGIN;
            END IF;
            GRANT SELECT ON job_past TO ode_api;
            EXIT;
        EXCEPTION
            WHEN duplicate_object OR unique_violation OR undefined_object THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The role ode_api is missing and may not be created here. Ask an administrator to run: CREATE ROLE ode_api NOLOGIN;'
                    USING ERRCODE = 'insufficient_privilege';
        END;
    END LOOP;
END $$;

CREATE FUNCTION ode_organisation() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT nullif(current_setting('ode.organisation', true), '')::uuid
$$;

CREATE FUNCTION ode_is_history(history bytea) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT history IS NULL OR octet_length(history) > 0 AND octet_length(history) % 7 = 0
$$;

-- Whether a job belongs to the organisation that asks.
CREATE FUNCTION ode_is_own(id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM job_live l WHERE l.id = ode_is_own.id AND l.organisation_id = ode_organisation())
        OR EXISTS (SELECT 1 FROM job_past p WHERE p.id = ode_is_own.id AND p.organisation_id = ode_organisation())
$$;

-- Whether it belongs to somebody else: asked with the owner's eyes, since the role itself would not see it.
CREATE FUNCTION ode_is_anothers(id uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
    SELECT EXISTS (SELECT 1 FROM job_live l
            WHERE l.id = ode_is_anothers.id AND l.organisation_id IS DISTINCT FROM ode_organisation())
        OR EXISTS (SELECT 1 FROM job_past p
            WHERE p.id = ode_is_anothers.id AND p.organisation_id IS DISTINCT FROM ode_organisation())
$$;

ALTER TABLE job_past ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_live ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_journal ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_artifact ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE owner ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE worker ENABLE ROW LEVEL SECURITY;

CREATE POLICY see_own ON job_past FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
CREATE POLICY see_own ON job_live FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
-- A job of one's own that waits for its first attempt, in the line of its pipeline.
CREATE POLICY create_own ON job_live FOR INSERT TO ode_api WITH CHECK (
    organisation_id = ode_organisation() AND owner = organisation_id AND user_id IS NULL
    AND worker IS NULL AND fence = 0 AND attempts = 0 AND retries = 0 AND crashes = 0
    AND ode_is_history(history)
    AND ((pipeline, state, lane) IN (('xml', 'queued', 'xml'), ('html', 'pending', 'html'),
            ('print', 'pending_export', 'print.export'), ('script', 'queued', 'script'))
        OR lane IS NULL AND (pipeline, state) IN (('xml', 'queued'), ('html', 'pending'), ('print', 'pending_export'),
            ('script', 'pending')))
    AND NOT ode_is_anothers(id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE job_past.id = job_live.id));
-- Taking a job of one's own out of the line calls it off. A worker that was quicker keeps it.
CREATE POLICY cancel_own ON job_live FOR DELETE TO ode_api
    USING (organisation_id = ode_organisation() AND worker IS NULL AND state IN ('pending', 'queued'));
CREATE POLICY see_own ON job_artifact FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_log FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_key FOR SELECT TO ode_api USING (owner = ode_organisation());
CREATE POLICY create_own ON job_key FOR INSERT TO ode_api WITH CHECK (owner = ode_organisation());
-- An entry may tell of many owners' jobs, so the role reads none directly: `ode_history` picks out one job's.
CREATE POLICY tell_own ON job_journal FOR INSERT TO ode_api
    WITH CHECK (NOT EXISTS (SELECT 1 FROM unnest(jobs) AS told (id) WHERE ode_is_anothers(told.id)));

-- A job that an organisation takes out of the line in SQL has ended. The engine, which names no organisation, moves
-- its jobs itself.
CREATE FUNCTION ode_cancelled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    ended text := CASE OLD.pipeline WHEN 'script' THEN 'cancelled' ELSE 'failed' END;
    seq bigint := ode_tell('cancelled', OLD.state, ended, OLD.id, 0);
    is_failure boolean := ended = 'failed';
BEGIN
    INSERT INTO job_past (id, created_at, queued_at, started_at, timeout_ms, fence, priority, attempts, retries,
        retries_max, pipeline, kind, state, session_id, user_id, organisation_id, created_by, external_id, advance,
        history, input, config, metadata, error_code, error_message)
    VALUES (OLD.id, OLD.created_at, OLD.queued_at, OLD.started_at, OLD.timeout_ms, OLD.fence, OLD.priority,
        OLD.attempts, OLD.retries, OLD.retries_max, OLD.pipeline, OLD.kind, ended, OLD.session_id, OLD.user_id,
        OLD.organisation_id, OLD.created_by, OLD.external_id, OLD.advance, OLD.history || ode_entry(seq), OLD.input,
        OLD.config, OLD.metadata, CASE WHEN is_failure THEN 'CANCELLED' END,
        CASE WHEN is_failure THEN 'The job was cancelled before it started. Submit it again if you still need it' END);
    RETURN NULL;
END $$;
CREATE TRIGGER job_live_cancelled AFTER DELETE ON job_live FOR EACH ROW
    WHEN (current_setting('ode.organisation', true) <> '') EXECUTE FUNCTION ode_cancelled();

-- The history of one job, for those who may see the job.
CREATE FUNCTION ode_history(job_id uuid)
RETURNS TABLE (seq bigint, event_type text, from_state text, to_state text, actor text, meta jsonb, at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT e.seq, e.event_type, e.from_state, e.to_state, e.actor, e.meta, e.at
    FROM job_events e
    WHERE e.job_id = ode_history.job_id
        -- A history that was written in SQL may name any entry; it is told only where the entry names the job.
        AND EXISTS (SELECT 1 FROM job_journal g WHERE g.seq = e.seq AND ode_history.job_id = ANY (g.jobs))
        AND (
        ode_is_own(e.job_id) OR NOT pg_has_role(session_user, 'ode_api', 'member')
        OR pg_has_role(session_user, (SELECT tableowner FROM pg_tables
            WHERE schemaname = current_schema() AND tablename = 'job_live'), 'member'))
    ORDER BY e.place
$$;
REVOKE ALL ON FUNCTION ode_history(uuid) FROM PUBLIC;

GRANT SELECT, INSERT ON job_live, job_key TO ode_api;
GRANT DELETE ON job_live TO ode_api;
GRANT SELECT ON job_past, job_artifact, job_log TO ode_api;
GRANT INSERT ON job_journal TO ode_api;
GRANT EXECUTE ON FUNCTION ode_history(uuid) TO ode_api;

-- Creates a job in the caller's own transaction: it exists when that transaction commits, and not otherwise.
-- Answers the job's id. A second call with the same external_id for the same organisation is a unique violation.
CREATE FUNCTION ode_enqueue(
    pipeline text, type text, input jsonb DEFAULT '{}', organisation_id uuid DEFAULT NULL,
    external_id text DEFAULT NULL, priority integer DEFAULT 0, run_at timestamptz DEFAULT NULL,
    config jsonb DEFAULT NULL, metadata jsonb DEFAULT NULL, max_retries integer DEFAULT NULL,
    created_by uuid DEFAULT NULL, timeout_ms bigint DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    new_id uuid := ode_new_id();
    seq bigint;
    history bytea;
    born text;
    waiting text;
    line text;
    is_due boolean := coalesce(run_at <= now(), TRUE);
BEGIN
    SELECT m.born, m.waiting, m.line INTO born, waiting, line FROM (VALUES
        ('xml', 'uploaded', 'queued', 'xml'), ('html', 'pending', 'pending', 'html'),
        ('print', 'pending_export', 'pending_export', 'print.export'), ('script', 'pending', 'queued', 'script')
    ) AS m (pipeline, born, waiting, line) WHERE m.pipeline = pipeline;
    IF born IS NULL THEN
        RAISE EXCEPTION 'There is no pipeline called "%". Use one of: xml, html, print, script.', pipeline
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(input::text) > 1048576 THEN
        RAISE EXCEPTION 'The input has % bytes and the limit is 1048576. Store the content as a file and refer to it.',
            octet_length(input::text) USING ERRCODE = 'program_limit_exceeded';
    END IF;
    -- A script whose time has not come stays as it was born.
    IF pipeline = 'script' AND NOT is_due THEN
        waiting := born;
    END IF;
    seq := ode_tell('created', NULL, born, new_id, 0);
    history := ode_entry(seq);
    IF born <> waiting THEN
        history := history || ode_entry(ode_tell('queued', born, waiting, new_id, seq));
    END IF;
    INSERT INTO job_live (id, owner, priority, retries_max, pipeline, kind, lane, organisation_id, created_by,
        external_id, timeout_ms, input, config, metadata, state, history, run_at)
    VALUES (new_id, coalesce(organisation_id, '00000000-0000-0000-0000-000000000000'), priority, max_retries,
        pipeline, type, CASE WHEN is_due THEN line::ode_lane END, organisation_id, created_by, external_id, timeout_ms, input,
        config, metadata, waiting, history, CASE WHEN NOT is_due THEN run_at END);
    IF is_due THEN
        PERFORM pg_notify('ode_ready', line);
    END IF;
    RETURN new_id;
END $$;

-- A journal number made by the database: in order of time, with a random tail.
CREATE FUNCTION ode_new_seq() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1767225600000) * 4096
        + floor(random() * 4096)::bigint
$$;

-- Tells one step of one job, under a number that is free and higher than `after`. Answers the number.
CREATE FUNCTION ode_tell(event text, from_state text, to_state text, told uuid, after bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    number bigint;
BEGIN
    -- There are few numbers in a millisecond, and others take some of them; a hundred tries outlast several.
    FOR try IN 1..100 LOOP
        number := greatest(ode_new_seq(), after + try);
        INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
        VALUES (number, event, from_state, to_state, 'sql', ARRAY[told]) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN number;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'The journal has no free number at this moment. Try again.' USING ERRCODE = 'serialization_failure';
END $$;

-- The names under which earlier systems know these relations.
CREATE VIEW script_jobs WITH (security_invoker) AS
SELECT id, reference AS job_id, type AS job_type, state AS status, input AS input_payload, result, error_message,
    error_code, error_detail AS error_stack, retry_count, max_retries, 5000 AS retry_delay_ms,
    CASE WHEN state = 'pending' AND retry_count > 0 THEN run_at END AS next_retry_at,
    progress_percent, progress_message, current_step, total_steps, created_at, started_at,
    finished_at AS completed_at, CASE WHEN state = 'cancelled' THEN finished_at END AS cancelled_at, updated_at,
    timeout_at, worker_id::text AS worker_id, process_pid, organisation_id,
    CASE WHEN metadata ->> 'restaurant_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
        THEN (metadata ->> 'restaurant_id')::uuid END AS restaurant_id, created_by, priority, metadata
FROM jobs WHERE pipeline = 'script';

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

DO $$ BEGIN
    -- Made on version 14, the views would show their owner's rows; whatever the server is today, they are not granted.
    IF (SELECT bool_and(coalesce('security_invoker=true' = ANY (reloptions), FALSE)) FROM pg_class
        WHERE oid IN ('jobs'::regclass, 'script_jobs'::regclass)) THEN
        GRANT SELECT ON jobs, script_jobs, script_jobs_queue_status, script_jobs_failed_summary, script_jobs_metrics
            TO ode_api;
    END IF;
END $$;
