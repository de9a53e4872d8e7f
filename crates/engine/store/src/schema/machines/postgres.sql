-- What follows from the machines of the pipelines: made with the engine's tables, and again whenever a machine or this file has
-- changed. Words in braces are the machines'.

-- Phases of ended jobs, the same for every pipeline. Beside the rules of states, so that a state without a phase cannot exist.
CREATE OR REPLACE FUNCTION ode_phase(state text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN state IN ({states done}) THEN 'done'
        WHEN state IN ({states failed}) THEN 'failed'
        WHEN state IN ({states cancelled}) THEN 'cancelled'
    END
$$;

ALTER DOMAIN ode_live_rules DROP CONSTRAINT IF EXISTS job_live_state_of_pipeline;
ALTER DOMAIN ode_live_rules ADD CONSTRAINT job_live_state_of_pipeline CHECK ({live_states (VALUE).});
ALTER DOMAIN ode_live_rules DROP CONSTRAINT IF EXISTS job_live_lane_of_pipeline;
ALTER DOMAIN ode_live_rules ADD CONSTRAINT job_live_lane_of_pipeline CHECK ({lanes_of (VALUE).});
ALTER DOMAIN ode_live_rules DROP CONSTRAINT IF EXISTS job_live_running_is_leased;
ALTER DOMAIN ode_live_rules ADD CONSTRAINT job_live_running_is_leased CHECK (CASE
    WHEN (VALUE).state IN ({states running})
        THEN num_nulls((VALUE).worker, (VALUE).lease_until, (VALUE).started_at, (VALUE).lane) = 0
    ELSE num_nonnulls((VALUE).worker, (VALUE).lease_until) = 0
        AND ((VALUE).lane IS NULL OR (VALUE).state NOT IN ({states held})) END);

ALTER DOMAIN ode_past_rules DROP CONSTRAINT IF EXISTS job_past_state_of_pipeline;
ALTER DOMAIN ode_past_rules ADD CONSTRAINT job_past_state_of_pipeline CHECK ({past_states (VALUE).});
ALTER DOMAIN ode_past_rules DROP CONSTRAINT IF EXISTS job_past_result_and_error;
ALTER DOMAIN ode_past_rules ADD CONSTRAINT job_past_result_and_error CHECK (CASE
    WHEN (VALUE).state IN ({states done}) THEN NOT ((VALUE).has_code OR (VALUE).has_message)
    WHEN (VALUE).state IN ({states cancelled}) THEN NOT ((VALUE).has_result OR (VALUE).has_code OR (VALUE).has_message)
    ELSE NOT (VALUE).has_result AND (VALUE).has_code AND (VALUE).has_message END);
-- What was done by nobody, because its twin was done already, was never begun.
ALTER DOMAIN ode_past_rules DROP CONSTRAINT IF EXISTS job_past_done_was_started;
ALTER DOMAIN ode_past_rules ADD CONSTRAINT job_past_done_was_started CHECK (
    (VALUE).was_started OR (VALUE).state NOT IN ({states started}));

-- Live and past jobs as the one relation that people query.
{jobs_view}

-- Calls off a job that waits. Answers whether it did: not what runs, has ended or is another organisation's; nor, where
-- the transaction names a person, what somebody else asked for.
CREATE OR REPLACE FUNCTION ode_cancel(job_id uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_variable
DECLARE
    j record;
    given_to text;
    given_adds bytea;
    given_version text;
    result jsonb;
    code text;
    message text;
    detail text;
    engine text := coalesce(current_setting('ode.engine', true), '');
BEGIN
    -- It leaves for its end, as when the engine moves it. (A setting of the function itself would take a superuser.)
    PERFORM set_config('ode.engine', 'on', TRUE);
    DELETE FROM job_live l USING (VALUES {cancels}) AS m (pipeline, state, ended, is_failure)
    WHERE l.id = job_id AND l.worker IS NULL AND m.pipeline = l.pipeline AND m.state = l.state
        AND (NOT ode_is_guest() OR l.organisation_id = ode_organisation()
            AND coalesce(l.created_by = ode_person(), ode_person() IS NULL))
    RETURNING l.*, m.ended, m.is_failure INTO j;
    PERFORM set_config('ode.engine', engine, TRUE);
    IF j.id IS NULL THEN
        RETURN FALSE;
    END IF;
    given_to := j.ended;
    given_adds := ode_entry(ode_tell('cancelled', j.state, given_to, j.id, 0));
    IF j.is_failure THEN
        code := 'CANCELLED';
        message := 'The job was cancelled before it started. Submit it again if you still need it';
    END IF;
    INSERT INTO job_past ({ended_columns}) VALUES ({ended_values given_});
    RETURN TRUE;
END $$;

-- Creates a job in the caller's own transaction: it exists when that transaction commits, and not otherwise.
-- Answers the job's id. A second call with the same external_id for the same organisation is a unique violation.
CREATE OR REPLACE FUNCTION ode_enqueue(
    pipeline text, type text, input jsonb DEFAULT '{}', organisation_id uuid DEFAULT NULL,
    external_id text DEFAULT NULL, priority integer DEFAULT 0, run_at timestamptz DEFAULT NULL,
    config jsonb DEFAULT NULL, metadata jsonb DEFAULT NULL, max_retries integer DEFAULT NULL,
    created_by uuid DEFAULT NULL, timeout_ms bigint DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_variable
DECLARE
    new_id uuid := ode_new_id();
    seq bigint;
    history bytea;
    born text;
    waiting text;
    line text;
    is_early boolean;
    refusal text;
    is_due boolean := coalesce(run_at <= now(), TRUE);
    owner uuid := coalesce(organisation_id, '00000000-0000-0000-0000-000000000000');
BEGIN
    IF ode_is_guest() AND organisation_id IS DISTINCT FROM ode_organisation() THEN
        RAISE EXCEPTION 'A job is made for the organisation of this transaction: pass it as organisation_id, and name it with SET LOCAL ode.organisation.'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT m.born, m.waiting, m.line, m.is_early INTO born, waiting, line, is_early
    FROM (VALUES {births}) AS m (pipeline, born, waiting, line, is_early) WHERE m.pipeline = pipeline;
    IF born IS NULL THEN
        RAISE EXCEPTION 'There is no pipeline called "%". Use one of: {pipelines}.', pipeline
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    refusal := CASE
        WHEN coalesce(length(type), 0) NOT BETWEEN 1 AND 255 THEN 'The type is a name of 1 to 255 characters.'
        WHEN length(external_id) NOT BETWEEN 1 AND 255 THEN 'The external_id is a name of 1 to 255 characters.'
        WHEN coalesce(priority, 5000) NOT BETWEEN -1000 AND 1000 THEN
            format('Priority %s is out of range; use -1000 to 1000.', priority)
        WHEN max_retries NOT BETWEEN 0 AND 100 THEN format('%s retries are out of range; use 0 to 100.', max_retries)
        WHEN timeout_ms NOT BETWEEN 1 AND 604800000 THEN 'The timeout_ms must be between 1 millisecond and 7 days.'
        WHEN input IS NULL THEN 'The input is null; give it a value.'
        END;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION '%', refusal USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT format('The %s has %s bytes and the limit is %s. Store the content as a file and refer to it.', d.name,
        octet_length(d.document::text), d.bytes_max) INTO refusal
    FROM (VALUES ('input', input, 1048576), ('config', config, 102400), ('metadata', metadata, 65536))
        AS d (name, document, bytes_max) WHERE octet_length(d.document::text) > d.bytes_max;
    IF FOUND THEN
        RAISE EXCEPTION '%', refusal USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF external_id IS NOT NULL THEN
        SELECT format('The external_id "%s" is taken by job %s.', external_id, k.job_id) INTO refusal
        FROM job_key k WHERE k.kind = 'external' AND k.owner = owner AND k.key = external_id;
        IF FOUND THEN
            RAISE EXCEPTION '%', refusal USING ERRCODE = 'unique_violation';
        END IF;
    END IF;
    IF is_early AND NOT is_due THEN
        waiting := born;
    END IF;
    seq := ode_tell('created', NULL, born, new_id, 0);
    history := ode_entry(seq);
    IF born <> waiting THEN
        history := history || ode_entry(ode_tell('queued', born, waiting, new_id, seq));
    END IF;
    INSERT INTO job_live (id, owner, priority, retries_max, pipeline, kind, lane, organisation_id, created_by,
        external_id, timeout_ms, input, config, metadata, state, history, run_at)
    VALUES (new_id, owner, priority, max_retries,
        pipeline, type, CASE WHEN is_due THEN line::ode_lane END, organisation_id, created_by, external_id, timeout_ms, input,
        config, metadata, waiting, history, CASE WHEN NOT is_due THEN run_at END);
    IF is_due THEN
        PERFORM pg_notify('ode_ready', line);
    END IF;
    RETURN new_id;
END $$;

-- For a whole batch at once: hardly any job has somebody to tell, and a call for each would cost more than its end.
CREATE OR REPLACE FUNCTION ode_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_delivery (id, owner, job_id, external_id, state, error_code, url)
    SELECT gen_random_uuid(), told.* FROM (
        SELECT w.owner, e.id, e.external_id, e.state, e.error_code, w.url
        FROM ended e JOIN webhook_endpoint w ON w.owner = coalesce(e.organisation_id, e.user_id, e.session_id,
            '00000000-0000-0000-0000-000000000000')
        WHERE e.pipeline IN ({notified}) AND w.gone_at IS NULL
        UNION
        SELECT coalesce(e.organisation_id, e.user_id, e.session_id, '00000000-0000-0000-0000-000000000000'),
            e.id, e.external_id, e.state, e.error_code, {own_webhook e.}
        FROM ended e WHERE {own_webhook e.} IS NOT NULL) AS told;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_past_announce AFTER INSERT ON job_past REFERENCING NEW TABLE AS ended
    FOR EACH STATEMENT EXECUTE FUNCTION ode_announce();

-- What acts with the owner's rights looks for its tables here, and last of all among the caller's temporary ones; and
-- it is for those only to whom the owner gives it.
DO $$
DECLARE
    lent regprocedure;
BEGIN
    FOR lent IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
        AND proname IN ('ode_enqueue', 'ode_cancel', 'ode_history')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', lent);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO ode_api', lent);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', lent, current_schema());
    END LOOP;
END $$;

DO $$ BEGIN
    -- Made on version 14, the view would show its owner's rows; whatever the server is today, it is not granted.
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class WHERE oid = 'jobs'::regclass)
    THEN
        GRANT SELECT ON jobs TO ode_api;
    END IF;
END $$;
