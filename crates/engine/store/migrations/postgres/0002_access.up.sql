-- Who may do what on PostgreSQL, and enqueueing from SQL.
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

-- The person who acts for the organisation, where the transaction names one (SET LOCAL ode.person).
CREATE FUNCTION ode_person() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT nullif(current_setting('ode.person', true), '')::uuid
$$;

-- Whether the caller is one of those who see only their organisation's rows. Asked of the one who called, also while a
-- function lends it the owner's rights. Here as below the body is bound to these tables when it is made: a temporary
-- table of the same name cannot come between.
CREATE FUNCTION ode_is_guest() RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT pg_has_role(caller.name, 'ode_api', 'member') AND NOT pg_has_role(caller.name, c.relowner, 'member')
    FROM pg_class c, (SELECT CASE current_setting('role') WHEN 'none' THEN session_user
        ELSE current_setting('role')::name END) AS caller (name)
    WHERE c.oid = 'job_live'::regclass;
END;

-- Whether a job belongs to the organisation that asks.
CREATE FUNCTION ode_is_own(id uuid) RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT EXISTS (SELECT 1 FROM job_live l WHERE l.id = ode_is_own.id AND l.organisation_id = ode_organisation())
        OR EXISTS (SELECT 1 FROM job_past p WHERE p.id = ode_is_own.id AND p.organisation_id = ode_organisation());
END;

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
CREATE POLICY see_own ON job_artifact FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_log FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_key FOR SELECT TO ode_api USING (owner = ode_organisation());
-- An entry may tell of many owners' jobs, so the role reads none directly: `ode_history` picks out one job's, for those
-- who may see the job.
CREATE FUNCTION ode_history(job_id uuid)
RETURNS TABLE (seq bigint, event_type text, from_state text, to_state text, actor text, meta jsonb, at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER BEGIN ATOMIC
    SELECT e.seq, e.event_type, e.from_state, e.to_state, e.actor, e.meta, e.at
    FROM job_events e
    WHERE e.job_id = ode_history.job_id AND (NOT ode_is_guest() OR ode_is_own(e.job_id))
    ORDER BY e.place;
END;

GRANT SELECT ON job_live, job_key, job_past, job_artifact, job_log TO ode_api;

-- Calls off a job that waits. Answers whether it did: not what runs, has ended or is another organisation's; nor, where
-- the transaction names a person, what somebody else asked for.
CREATE FUNCTION ode_cancel(job_id uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_variable
DECLARE
    old job_live;
    ended text;
    is_failure boolean;
    engine text := coalesce(current_setting('ode.engine', true), '');
BEGIN
    -- It leaves for its end, as when the engine moves it. (A setting of the function itself would take a superuser.)
    PERFORM set_config('ode.engine', 'on', TRUE);
    DELETE FROM job_live l WHERE l.id = job_id AND l.worker IS NULL AND l.state IN ('pending', 'queued')
        AND (NOT ode_is_guest() OR l.organisation_id = ode_organisation()
            AND coalesce(l.created_by = ode_person(), ode_person() IS NULL))
    RETURNING * INTO old;
    PERFORM set_config('ode.engine', engine, TRUE);
    IF old.id IS NULL THEN
        RETURN FALSE;
    END IF;
    ended := CASE old.pipeline WHEN 'script' THEN 'cancelled' ELSE 'failed' END;
    is_failure := ended = 'failed';
    INSERT INTO job_past (id, created_at, queued_at, started_at, timeout_ms, fence, priority, attempts, retries,
        retries_max, pipeline, kind, state, session_id, user_id, organisation_id, created_by, external_id, advance,
        history, input, config, metadata, error_code, error_message)
    VALUES (old.id, old.created_at, old.queued_at, old.started_at, old.timeout_ms, old.fence, old.priority,
        old.attempts, old.retries, old.retries_max, old.pipeline, old.kind, ended, old.session_id, old.user_id,
        old.organisation_id, old.created_by, old.external_id, old.advance,
        old.history || ode_entry(ode_tell('cancelled', old.state, ended, old.id, 0)), old.input, old.config,
        old.metadata, CASE WHEN is_failure THEN 'CANCELLED' END,
        CASE WHEN is_failure THEN 'The job was cancelled before it started. Submit it again if you still need it' END);
    RETURN TRUE;
END $$;

-- Creates a job in the caller's own transaction: it exists when that transaction commits, and not otherwise.
-- Answers the job's id. A second call with the same external_id for the same organisation is a unique violation.
CREATE FUNCTION ode_enqueue(
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
    refusal text;
    is_due boolean := coalesce(run_at <= now(), TRUE);
    owner uuid := coalesce(organisation_id, '00000000-0000-0000-0000-000000000000');
BEGIN
    IF ode_is_guest() AND organisation_id IS DISTINCT FROM ode_organisation() THEN
        RAISE EXCEPTION 'A job is made for the organisation of this transaction: pass it as organisation_id, and name it with SET LOCAL ode.organisation.'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT m.born, m.waiting, m.line INTO born, waiting, line FROM (VALUES
        ('xml', 'uploaded', 'queued', 'xml'), ('html', 'pending', 'pending', 'html'),
        ('print', 'pending_export', 'pending_export', 'print.export'), ('script', 'pending', 'queued', 'script')
    ) AS m (pipeline, born, waiting, line) WHERE m.pipeline = pipeline;
    IF born IS NULL THEN
        RAISE EXCEPTION 'There is no pipeline called "%". Use one of: xml, html, print, script.', pipeline
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
    VALUES (new_id, owner, priority, max_retries,
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
