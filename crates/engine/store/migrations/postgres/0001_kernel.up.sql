-- The engine's tables.
--
-- A job is one row: in `job_live` while there is something left to do, in `job_past` once it has ended. Ending
-- moves it. The view `jobs` shows both as the one relation people query.
--
-- Work then stays small and quick however much has been done: a job is written once when it is made and once when
-- it ends, history is never updated, and no column that a claim changes is in an index, so a claimed row stays on
-- its page.

-- The pipelines whose machines this database knows, and what was made from them; one row.
CREATE TABLE ode_machines (
    pipelines text NOT NULL,
    sha256    text NOT NULL
);

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

CREATE FUNCTION ode_refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM job_live WHERE id = OLD.id) THEN
        RAISE EXCEPTION '% is append-only: only retention may change or remove what it holds', TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;

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

-- The lines that jobs wait in. A number to the server, so that the index of the lines is quick to compare and small.
CREATE TYPE ode_lane AS ENUM ({lanes});

-- What single columns may hold. As domains rather than constraints of the tables: the server reads every constraint
-- of a table anew in each statement that writes to it, and those of a domain once in a session.
CREATE DOMAIN ode_kind AS text CHECK (length(VALUE) BETWEEN 1 AND 255);
CREATE DOMAIN ode_external_id AS text CHECK (length(VALUE) BETWEEN 1 AND 255);
CREATE DOMAIN ode_priority AS smallint CHECK (VALUE BETWEEN -1000 AND 1000);
CREATE DOMAIN ode_timeout_ms AS bigint CHECK (VALUE BETWEEN 1 AND 604800000);
CREATE DOMAIN ode_count AS smallint CHECK (VALUE >= 0);
CREATE DOMAIN ode_number AS integer CHECK (VALUE >= 0);
CREATE DOMAIN ode_percent AS smallint CHECK (VALUE BETWEEN 0 AND 100);

-- What must hold between the columns of a row, as a domain too: one over those facts together, to which a table's only
-- constraint turns each row. A refusal names the rule that was broken. Rules about states come from the machines.
CREATE TYPE ode_live_facts AS (
    pipeline text, state text, lane ode_lane, worker uuid, lease_until timestamptz, started_at timestamptz,
    session_id uuid, organisation_id uuid, least_count integer, is_owners boolean, is_too_far boolean);
CREATE DOMAIN ode_live_rules AS ode_live_facts
    CONSTRAINT job_live_one_owner CHECK (num_nonnulls((VALUE).session_id, (VALUE).organisation_id) <= 1)
    CONSTRAINT job_live_turn_is_owners CHECK ((VALUE).is_owners)
    CONSTRAINT job_live_counts CHECK ((VALUE).least_count >= 0)
    CONSTRAINT job_live_step_within_steps CHECK (NOT (VALUE).is_too_far);
CREATE TYPE ode_past_facts AS (
    pipeline text, state text, has_result boolean, has_code boolean, has_message boolean, session_id uuid,
    organisation_id uuid, least_count integer, was_started boolean);
CREATE DOMAIN ode_past_rules AS ode_past_facts
    CONSTRAINT job_past_one_owner CHECK (num_nonnulls((VALUE).session_id, (VALUE).organisation_id) <= 1)
    CONSTRAINT job_past_counts CHECK ((VALUE).least_count >= 0);

CREATE TABLE job_live (
    id               uuid PRIMARY KEY,
    -- Whose turn it is: the owner's key, nil for the operator.
    owner            uuid NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    priority         ode_priority NOT NULL DEFAULT 0,
    -- As many as the handler allows, where it does not say.
    retries_max      ode_count,
    pipeline         text NOT NULL,
    kind             ode_kind NOT NULL,
    -- The line it waits or runs in; none while it is held.
    lane             ode_lane,
    session_id       uuid,
    user_id          uuid,
    organisation_id  uuid,
    created_by       uuid,
    external_id      ode_external_id,
    timeout_ms       ode_timeout_ms,
    input            jsonb NOT NULL,
    config           jsonb,
    metadata         jsonb,
    advance          boolean,
    run_at           timestamptz,
    -- When it last became eligible, where that was not at its creation.
    queued_at        timestamptz,
    -- What a claim changes comes last, so that it logs only this.
    retries          smallint NOT NULL DEFAULT 0,
    crashes          smallint NOT NULL DEFAULT 0,
    fence            integer NOT NULL DEFAULT 0,
    attempts         smallint NOT NULL DEFAULT 0,
    state            text NOT NULL,
    history          bytea NOT NULL,
    updated_at       timestamptz,
    started_at       timestamptz,
    timeout_at       timestamptz,
    lease_until      timestamptz,
    worker           uuid,
    stop_at          timestamptz,
    progress_percent ode_percent,
    progress_step    ode_number,
    progress_steps   ode_number,
    progress_message text,
    process_pid      bigint,
    CONSTRAINT job_live_rules CHECK (ROW(pipeline, state, lane, worker, lease_until, started_at, session_id,
        organisation_id, least(fence, attempts, retries, crashes),
        owner = coalesce(organisation_id, session_id, user_id, '00000000-0000-0000-0000-000000000000'),
        progress_step > progress_steps)::ode_live_rules IS DISTINCT FROM NULL)
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
    -- Gathering statistics holds on to rows that are gone, and every claim then steps over them; ways are fixed here.
    autovacuum_analyze_threshold = 2000000000);
-- The line: highest priority, then whose turn, then oldest (ids are in order of creation). Here as below an index
-- that ends in the id has no two entries alike: looking for duplicates would be work for nothing.
CREATE INDEX job_live_line ON job_live (lane, priority DESC, owner, id) WITH (deduplicate_items = off)
    WHERE lane IS NOT NULL;
CREATE INDEX job_live_due ON job_live (run_at) WHERE lane IS NULL AND run_at IS NOT NULL;
CREATE INDEX job_live_session ON job_live (session_id, id) WITH (deduplicate_items = off) WHERE session_id IS NOT NULL;
CREATE INDEX job_live_user ON job_live (user_id, id) WITH (deduplicate_items = off) WHERE user_id IS NOT NULL;
CREATE INDEX job_live_organisation ON job_live (organisation_id, id) WITH (deduplicate_items = off)
    WHERE organisation_id IS NOT NULL;
CREATE TRIGGER job_live_touch AFTER UPDATE ON job_live FOR EACH ROW
    WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at
        OR NEW.updated_at IS DISTINCT FROM OLD.updated_at AND NOT NEW.updated_at BETWEEN now() AND clock_timestamp())
    EXECUTE FUNCTION ode_touch();

CREATE TABLE job_past (
    id              uuid PRIMARY KEY,
    created_at      timestamptz NOT NULL,
    queued_at       timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz,
    timeout_ms      ode_timeout_ms,
    fence           integer NOT NULL,
    priority        ode_priority NOT NULL,
    attempts        smallint NOT NULL,
    retries         smallint NOT NULL,
    retries_max     ode_count,
    pipeline        text NOT NULL,
    kind            ode_kind NOT NULL,
    state           text NOT NULL,
    engine_version  text,
    session_id      uuid,
    user_id         uuid,
    organisation_id uuid,
    created_by      uuid,
    external_id     ode_external_id,
    advance         boolean,
    history         bytea NOT NULL,
    input           jsonb NOT NULL,
    config          jsonb,
    metadata        jsonb,
    result          jsonb,
    error_code      text,
    error_message   text,
    error_detail    text,
    CONSTRAINT job_past_rules CHECK (ROW(pipeline, state, result IS NOT NULL, error_code IS NOT NULL,
        error_message IS NOT NULL, session_id, organisation_id, least(fence, attempts, retries),
        attempts = 0 OR started_at IS NOT NULL)::ode_past_rules IS DISTINCT FROM NULL)
);
CREATE INDEX job_past_session ON job_past (session_id, id) WITH (deduplicate_items = off) WHERE session_id IS NOT NULL;
CREATE INDEX job_past_user ON job_past (user_id, id) WITH (deduplicate_items = off) WHERE user_id IS NOT NULL;
CREATE INDEX job_past_organisation ON job_past (organisation_id, id) WITH (deduplicate_items = off)
    WHERE organisation_id IS NOT NULL;
CREATE INDEX job_past_failed ON job_past (id) WHERE error_code IS NOT NULL;
CREATE TRIGGER job_past_touch AFTER UPDATE ON job_past FOR EACH ROW
    WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at
        OR NOT NEW.updated_at BETWEEN now() AND clock_timestamp()) EXECUTE FUNCTION ode_touch();

-- What was told of a job stays told: a history only grows.
CREATE TRIGGER job_past_history AFTER UPDATE ON job_past FOR EACH ROW
    WHEN (substring(NEW.history FOR octet_length(OLD.history)) <> OLD.history) EXECUTE FUNCTION ode_refuse();

-- Nor does a job go, but to be tried again: it is in the other table then.
CREATE TRIGGER job_past_stays AFTER DELETE ON job_past FOR EACH ROW
    WHEN (coalesce(current_setting('ode.retention', true), '') <> 'on') EXECUTE FUNCTION ode_refuse_loss();
CREATE TRIGGER job_past_not_emptied BEFORE TRUNCATE ON job_past FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- Nor does a job that has not ended, but to its end. Asked once a statement, so that the engine, which moves rows, does
-- not pay for every job.
CREATE FUNCTION ode_refuse_leaving() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job_live_stays: a job that has not ended cannot be removed; call it off with ode_cancel or `ode jobs cancel`, or stop it with `ode jobs stop`'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER job_live_stays BEFORE DELETE OR TRUNCATE ON job_live FOR EACH STATEMENT
    WHEN (coalesce(current_setting('ode.engine', true), '') <> 'on') EXECUTE FUNCTION ode_refuse_leaving();

-- A job is in one of the two tables. The engine moves a row and makes new ids, so its connections are not asked: it
-- would cost every job that is made and every one that ends. Everybody else is, when their transaction commits.
CREATE FUNCTION ode_refuse_twice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'job_once: a job keeps its id' USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM job_live l JOIN job_past p ON p.id = l.id WHERE l.id = NEW.id) THEN
        RAISE EXCEPTION 'job_once: job % is in job_live and in job_past', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_live_once AFTER INSERT OR UPDATE OF id ON job_live DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (coalesce(current_setting('ode.engine', true), '') <> 'on') EXECUTE FUNCTION ode_refuse_twice();
CREATE CONSTRAINT TRIGGER job_past_once AFTER INSERT OR UPDATE OF id ON job_past DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (coalesce(current_setting('ode.engine', true), '') <> 'on') EXECUTE FUNCTION ode_refuse_twice();

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
    job_id       uuid NOT NULL,
    role         text NOT NULL CHECK (role IN ('source', 'result', 'asset', 'log', 'screenshot', 'export')),
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
CREATE TRIGGER job_artifact_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON job_artifact
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

CREATE TABLE job_log (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id  uuid NOT NULL,
    attempt integer NOT NULL,
    level   text NOT NULL CHECK (level IN ('info', 'warn', 'error')),
    message text NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX job_log_job ON job_log (job_id, id);
CREATE TRIGGER job_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON job_log
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- Keys under which a job was asked for: a request is known by its idempotency key, content by its dedupe key, and
-- the owner's own name for it is its external id.
CREATE TABLE job_key (
    kind       text NOT NULL CHECK (kind IN ('idempotency', 'dedupe', 'external')),
    owner      uuid NOT NULL,
    key        text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    job_id     uuid NOT NULL,
    request    text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, owner, key)
);
CREATE INDEX job_key_job ON job_key (job_id);

-- An owner's external id names one job, live or past. A job that is tried again has its name already.
CREATE FUNCTION ode_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM job_key WHERE kind = 'external' AND owner = NEW.owner AND key = NEW.external_id
        AND job_id = NEW.id) THEN
        INSERT INTO job_key (kind, owner, key, job_id) VALUES ('external', NEW.owner, NEW.external_id, NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_live_name AFTER INSERT ON job_live FOR EACH ROW WHEN (NEW.external_id IS NOT NULL)
    EXECUTE FUNCTION ode_name();

-- Files and logs belong to a job, wherever its row is; looked at when the transaction that may move it commits.
CREATE FUNCTION ode_belongs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id)
        AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) THEN
        RAISE EXCEPTION '% names job %, which does not exist', TG_TABLE_NAME, NEW.job_id
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_artifact_belongs AFTER INSERT ON job_artifact DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();
CREATE CONSTRAINT TRIGGER job_log_belongs AFTER INSERT ON job_log DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();

-- A job that retention removes takes what belongs to it along.
CREATE FUNCTION ode_remove() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM job_artifact WHERE job_id = OLD.id;
    DELETE FROM job_log WHERE job_id = OLD.id;
    DELETE FROM job_key WHERE job_id = OLD.id;
    DELETE FROM checks WHERE job_id = OLD.id;
    DELETE FROM job_download WHERE job_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_remove AFTER DELETE ON job_past FOR EACH ROW
    WHEN (current_setting('ode.retention', true) = 'on') EXECUTE FUNCTION ode_remove();

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
    running     bigint NOT NULL DEFAULT 0 CHECK (running >= 0),
    -- What it says of itself with each beat: its slots, and where its breakers stand.
    about       jsonb
);

CREATE VIEW job_events WITH (security_invoker) AS
SELECT e.seq, t.id AS job_id, e.event AS event_type, e.from_state, e.to_state, e.actor,
    e.details -> t.id::text AS meta, e.at, h.place
FROM (SELECT id, history FROM job_live UNION ALL SELECT id, history FROM job_past) t
CROSS JOIN LATERAL generate_series(1, octet_length(t.history) / 7) AS h (place)
JOIN job_journal e ON e.seq = ode_seq(t.history, h.place);

CREATE VIEW job_logs WITH (security_invoker) AS
SELECT id, job_id, level, message, at AS created_at, attempt FROM job_log;

-- Secrets under which cookies and links are signed, so that every web process accepts what another has made.
CREATE TABLE web_key (
    name       text PRIMARY KEY,
    secret     bytea NOT NULL CHECK (octet_length(secret) >= 32),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- A person or an organisation that gets a second key is the same one.
CREATE UNIQUE INDEX owner_name ON owner (kind, name) WHERE name IS NOT NULL;

-- Finds content again whoever sent it, where results are shared.
CREATE INDEX job_key_content ON job_key (key) WHERE kind = 'dedupe';

-- How long things are kept, in microseconds; one row, which whoever serves writes at its start.
CREATE TABLE retention_policy (
    one                boolean PRIMARY KEY DEFAULT TRUE CHECK (one),
    source_micros      bigint NOT NULL DEFAULT 604800000000 CHECK (source_micros > 0),
    result_micros      bigint NOT NULL DEFAULT 2592000000000 CHECK (result_micros > 0),
    events_micros      bigint NOT NULL DEFAULT 7776000000000 CHECK (events_micros > 0),
    script_micros      bigint NOT NULL DEFAULT 2592000000000 CHECK (script_micros > 0),
    delete_on_download boolean NOT NULL DEFAULT FALSE
);
INSERT INTO retention_policy DEFAULT VALUES;

-- Files that nothing points to any more. A file's row moves here in the transaction that gives it up, and leaves when
-- the file is gone: a crash in between leaves work to do, never a file that nobody knows of.
CREATE TABLE blob_trash (
    storage    text NOT NULL,
    path       text NOT NULL,
    not_before timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (storage, path)
);

-- Work that one process at a time does for all: who is at it, since when, until when that is believed, and when what
-- was last done had begun: what happened since may not have been seen.
CREATE TABLE chore (
    name     text PRIMARY KEY,
    holder   uuid,
    taken_at timestamptz,
    until    timestamptz,
    done_at  timestamptz
);

CREATE TABLE job_download (
    job_id   uuid PRIMARY KEY,
    count    integer NOT NULL CHECK (count > 0),
    first_at timestamptz NOT NULL DEFAULT now(),
    last_at  timestamptz NOT NULL DEFAULT now()
);

-- What was found out about a result. The last four columns are a language model's.
CREATE TABLE checks (
    id             uuid PRIMARY KEY,
    job_id         uuid NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('arithmetic', 'schema', 'content', 'model')),
    severity       text NOT NULL CHECK (severity IN ('info', 'review', 'error')),
    code           text NOT NULL CHECK (length(code) BETWEEN 1 AND 255),
    field          text,
    message        text NOT NULL,
    model          text,
    prompt_version text,
    confidence     double precision CHECK (confidence BETWEEN 0 AND 1),
    output         jsonb,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT checks_model CHECK ((kind = 'model') = (model IS NOT NULL))
);
CREATE INDEX checks_job ON checks (job_id, id);
CREATE TRIGGER checks_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON checks
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();
CREATE CONSTRAINT TRIGGER checks_belongs AFTER INSERT ON checks DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();
CREATE CONSTRAINT TRIGGER job_download_belongs AFTER INSERT ON job_download DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();

-- Addresses that an owner wants to be told at, whichever of its jobs ends.
CREATE TABLE webhook_endpoint (
    id         uuid PRIMARY KEY,
    owner      uuid NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    url        text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Since when it is told nothing, because it said that nobody is there any more.
    gone_at    timestamptz,
    UNIQUE (owner, url)
);

-- What messages to an owner are signed with, and for a while after a new one was made with the earlier one as well.
CREATE TABLE webhook_secret (
    owner         uuid PRIMARY KEY,
    secret        bytea NOT NULL,
    earlier       bytea,
    earlier_until timestamptz,
    CONSTRAINT webhook_secret_earlier CHECK ((earlier IS NULL) = (earlier_until IS NULL))
);

-- One message to one address: made with the end of the job, and complete in itself, so that it outlives the job.
CREATE TABLE webhook_delivery (
    id           uuid PRIMARY KEY,
    owner        uuid NOT NULL,
    job_id       uuid NOT NULL,
    external_id  text,
    state        text NOT NULL,
    error_code   text,
    url          text NOT NULL,
    status       text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts     integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at       timestamptz NOT NULL DEFAULT now(),
    answer       integer,
    problem      text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    CONSTRAINT webhook_delivery_delivered CHECK ((status = 'delivered') = (delivered_at IS NOT NULL))
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE status = 'pending';
CREATE INDEX webhook_delivery_job ON webhook_delivery (job_id);

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
ALTER TABLE web_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE retention_policy ENABLE ROW LEVEL SECURITY;
ALTER TABLE blob_trash ENABLE ROW LEVEL SECURITY;
ALTER TABLE chore ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_download ENABLE ROW LEVEL SECURITY;
ALTER TABLE checks ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_endpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_delivery ENABLE ROW LEVEL SECURITY;

CREATE POLICY see_own ON job_past FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
CREATE POLICY see_own ON job_live FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
CREATE POLICY see_own ON job_artifact FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_log FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON job_key FOR SELECT TO ode_api USING (owner = ode_organisation());
CREATE POLICY see_own ON job_download FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON checks FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_all ON retention_policy FOR SELECT TO ode_api USING (TRUE);
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

GRANT SELECT ON job_live, job_key, job_past, job_artifact, job_log, job_download, checks, retention_policy TO ode_api;

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

DO $$ BEGIN
    -- Made on version 14, a view would show its owner's rows; whatever the server is today, it is not granted.
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class WHERE oid = 'job_logs'::regclass)
    THEN
        GRANT SELECT ON job_logs TO ode_api;
    END IF;
END $$;
