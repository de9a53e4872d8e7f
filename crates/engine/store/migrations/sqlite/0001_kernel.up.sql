-- The engine's tables; the same shape and rules as on PostgreSQL, in SQLite's types: ids are 16-byte blobs,
-- moments are microseconds since 1970, JSON is text.

-- The pipelines whose machines this database knows, and what was made from them; one row.
CREATE TABLE ode_machines (
    pipelines TEXT NOT NULL,
    sha256    TEXT NOT NULL
) STRICT;

CREATE TABLE owner (
    id          BLOB PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('session', 'user', 'organisation')),
    name        TEXT,
    created_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE TABLE api_key (
    id          TEXT PRIMARY KEY,
    owner       BLOB NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    created_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    used_at     INTEGER,
    revoked_at  INTEGER
) STRICT;
CREATE INDEX api_key_owner ON api_key (owner);

CREATE TABLE job_live (
    id               BLOB PRIMARY KEY CHECK (length(id) = 16),
    -- Whose turn it is: the owner's key, nil for the operator.
    owner            BLOB NOT NULL,
    fence            INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    state            TEXT NOT NULL,
    created_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    priority         INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000 AND 1000),
    -- As many as the handler allows, where it does not say.
    retries_max      INTEGER CHECK (retries_max >= 0),
    attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    retries          INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0),
    crashes          INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    pipeline         TEXT NOT NULL,
    kind             TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 255),
    -- The line it waits or runs in; none while it is held.
    lane             TEXT,
    session_id       BLOB,
    user_id          BLOB,
    organisation_id  BLOB,
    created_by       BLOB,
    external_id      TEXT CHECK (length(external_id) BETWEEN 1 AND 255),
    timeout_ms       INTEGER CHECK (timeout_ms BETWEEN 1 AND 604800000),
    history          TEXT NOT NULL,
    input            TEXT NOT NULL,
    config           TEXT,
    metadata         TEXT,
    advance          INTEGER,
    run_at           INTEGER,
    -- When it last became eligible, where that was not at its creation.
    queued_at        INTEGER,
    updated_at       INTEGER,
    started_at       INTEGER,
    timeout_at       INTEGER,
    lease_until      INTEGER,
    worker           BLOB,
    stop_at          INTEGER,
    progress_percent INTEGER CHECK (progress_percent BETWEEN 0 AND 100),
    progress_step    INTEGER CHECK (progress_step >= 0),
    progress_steps   INTEGER CHECK (progress_steps >= 0),
    progress_message TEXT,
    process_pid      INTEGER,
    {live_rules},
    CONSTRAINT job_live_one_owner CHECK (session_id IS NULL OR organisation_id IS NULL),
    CONSTRAINT job_live_turn_is_owners CHECK (
        owner = coalesce(organisation_id, session_id, user_id, x'00000000000000000000000000000000')),
    CONSTRAINT job_live_step_within_steps CHECK (progress_step <= progress_steps)
) STRICT;
-- The line: highest priority, then whose turn, then oldest (ids are in order of creation). Rows that a worker
-- holds leave it: unlike PostgreSQL, SQLite rewrites them anyway, and a claim need not step over them.
CREATE INDEX job_live_line ON job_live (lane, priority DESC, owner, id) WHERE lane IS NOT NULL AND worker IS NULL;
CREATE INDEX job_live_due ON job_live (run_at) WHERE lane IS NULL AND run_at IS NOT NULL;
CREATE INDEX job_live_session ON job_live (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX job_live_user ON job_live (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX job_live_organisation ON job_live (organisation_id, id) WHERE organisation_id IS NOT NULL;
CREATE TRIGGER job_live_touch AFTER UPDATE ON job_live FOR EACH ROW
    WHEN NEW.updated_at IS OLD.updated_at AND NEW.started_at IS OLD.started_at
    OR NEW.updated_at IS NOT OLD.updated_at
        AND NEW.updated_at NOT BETWEEN coalesce(OLD.updated_at, OLD.created_at) AND CAST(unixepoch('subsec') * 1000000 AS INTEGER) BEGIN
    UPDATE job_live SET updated_at = max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), coalesce(OLD.updated_at, 0) + 1) WHERE id = NEW.id;
END;

CREATE TABLE job_past (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    created_at      INTEGER NOT NULL,
    queued_at       INTEGER,
    started_at      INTEGER,
    finished_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    updated_at      INTEGER,
    timeout_ms      INTEGER CHECK (timeout_ms BETWEEN 1 AND 604800000),
    fence           INTEGER NOT NULL CHECK (fence >= 0),
    priority        INTEGER NOT NULL CHECK (priority BETWEEN -1000 AND 1000),
    attempts        INTEGER NOT NULL CHECK (attempts >= 0),
    retries         INTEGER NOT NULL CHECK (retries >= 0),
    retries_max     INTEGER CHECK (retries_max >= 0),
    pipeline        TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 255),
    state           TEXT NOT NULL,
    engine_version  TEXT,
    session_id      BLOB,
    user_id         BLOB,
    organisation_id BLOB,
    created_by      BLOB,
    external_id     TEXT CHECK (length(external_id) BETWEEN 1 AND 255),
    advance         INTEGER,
    history         TEXT NOT NULL,
    input           TEXT NOT NULL,
    config          TEXT,
    metadata        TEXT,
    result          TEXT,
    error_code      TEXT,
    error_message   TEXT,
    error_detail    TEXT,
    {past_rules},
    CONSTRAINT job_past_one_owner CHECK (session_id IS NULL OR organisation_id IS NULL)
) STRICT;
CREATE INDEX job_past_session ON job_past (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX job_past_user ON job_past (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX job_past_organisation ON job_past (organisation_id, id) WHERE organisation_id IS NOT NULL;
CREATE INDEX job_past_failed ON job_past (id) WHERE error_code IS NOT NULL;
CREATE TRIGGER job_past_touch AFTER UPDATE ON job_past FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at
    OR NEW.updated_at NOT BETWEEN coalesce(OLD.updated_at, OLD.created_at) AND CAST(unixepoch('subsec') * 1000000 AS INTEGER) BEGIN
    UPDATE job_past SET updated_at = max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), coalesce(OLD.updated_at, 0) + 1) WHERE id = NEW.id;
END;

-- What was told of a job stays told: a history only grows.
CREATE TRIGGER job_past_history BEFORE UPDATE OF history ON job_past
    WHEN substr(NEW.history, 1, length(OLD.history)) <> OLD.history AND NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_past is append-only: only retention may change or remove what it holds');
END;

-- Nor does a job go, but to be tried again: it is in the other table then.
CREATE TRIGGER job_past_stays BEFORE DELETE ON job_past WHEN NOT EXISTS (SELECT 1 FROM retention_pass)
    AND NOT EXISTS (SELECT 1 FROM job_live WHERE id = OLD.id) BEGIN
    SELECT raise(ABORT, 'job_past is append-only: only retention may change or remove what it holds');
END;

-- A job is in one of the two tables: to put it into the one takes it out of the other, which is how the engine moves
-- it. A row goes on where the one before was, or is refused; an ended one that the engine did not make is refused
-- wherever its job is.
CREATE TRIGGER job_live_once AFTER INSERT ON job_live WHEN EXISTS (SELECT 1 FROM job_past WHERE id = NEW.id) BEGIN
    SELECT raise(ABORT, 'job_once: the job is in job_past') FROM job_past
    WHERE id = NEW.id AND substr(NEW.history, 1, length(history) + 1) IS NOT history || ',';
    DELETE FROM job_past WHERE id = NEW.id;
END;
CREATE TRIGGER job_past_once BEFORE INSERT ON job_past WHEN NEW.engine_version IS NULL
    AND (EXISTS (SELECT 1 FROM job_live WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM job_past WHERE id = NEW.id)) BEGIN
    SELECT raise(ABORT, 'job_once: the job is in job_live or in job_past');
END;
CREATE TRIGGER job_past_moves AFTER INSERT ON job_past BEGIN
    DELETE FROM job_live WHERE id = NEW.id;
END;

-- Nor does a job that has not ended go, but to its end: it is in the other table then.
CREATE TRIGGER job_live_stays AFTER DELETE ON job_live WHEN NOT EXISTS (SELECT 1 FROM job_past WHERE id = OLD.id) BEGIN
    SELECT raise(ABORT, 'job_live_stays: a job that has not ended cannot be removed; call it off with `ode jobs cancel`, or stop it with `ode jobs stop`');
END;
CREATE TRIGGER job_live_keeps_id BEFORE UPDATE OF id ON job_live WHEN NEW.id <> OLD.id BEGIN
    SELECT raise(ABORT, 'job_once: a job keeps its id');
END;
CREATE TRIGGER job_past_keeps_id BEFORE UPDATE OF id ON job_past WHEN NEW.id <> OLD.id BEGIN
    SELECT raise(ABORT, 'job_once: a job keeps its id');
END;

-- What happened. One entry tells one step of every job that took it together; each job keeps the numbers of
-- its own entries in `history`. `jobs` holds their ids, 16 bytes each, one after the other.
CREATE TABLE job_journal (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    event      TEXT NOT NULL,
    from_state TEXT,
    to_state   TEXT NOT NULL,
    actor      TEXT NOT NULL,
    jobs       BLOB NOT NULL,
    details    TEXT
) STRICT;

-- Stands in for a session setting: retention puts a row here for the length of its transaction.
CREATE TABLE retention_pass (open INTEGER NOT NULL) STRICT;
CREATE TRIGGER job_journal_no_update BEFORE UPDATE ON job_journal WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_journal is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER job_journal_no_delete BEFORE DELETE ON job_journal WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_journal is append-only: only retention may change or remove what it holds');
END;

-- A row that replaces another would delete it without its trigger being asked. Here as below that is told in the words of
-- the constraint that an ordinary insert would break.
CREATE TRIGGER job_journal_not_replaced BEFORE INSERT ON job_journal
WHEN EXISTS (SELECT 1 FROM job_journal WHERE seq = NEW.seq) BEGIN
    SELECT raise(ABORT, 'UNIQUE constraint failed: job_journal.seq');
END;

CREATE TABLE job_artifact (
    id           BLOB PRIMARY KEY,
    job_id       BLOB NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('source', 'result', 'asset', 'log', 'screenshot', 'export')),
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 1024),
    storage      TEXT NOT NULL CHECK (storage IN ('local', 's3')),
    path         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    bytes        INTEGER NOT NULL CHECK (bytes > 0),
    sha256       TEXT NOT NULL CHECK (length(sha256) = 64),
    created_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (job_id, role, name),
    UNIQUE (storage, path)
) STRICT;
CREATE TRIGGER job_artifact_no_update BEFORE UPDATE ON job_artifact WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_artifact is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER job_artifact_no_delete BEFORE DELETE ON job_artifact WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_artifact is append-only: only retention may change or remove what it holds');
END;

CREATE TRIGGER job_artifact_not_replaced BEFORE INSERT ON job_artifact WHEN EXISTS (SELECT 1 FROM job_artifact
    WHERE id = NEW.id OR job_id = NEW.job_id AND role = NEW.role AND name = NEW.name
        OR storage = NEW.storage AND path = NEW.path) BEGIN
    SELECT raise(ABORT, 'UNIQUE constraint failed: job_artifact, by id, by job_id, role and name, or by storage and path');
END;

CREATE TABLE job_log (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id  BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    level   TEXT NOT NULL CHECK (level IN ('info', 'warn', 'error')),
    message TEXT NOT NULL,
    at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;
CREATE INDEX job_log_job ON job_log (job_id, id);
CREATE TRIGGER job_log_no_update BEFORE UPDATE ON job_log WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_log is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER job_log_no_delete BEFORE DELETE ON job_log WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_log is append-only: only retention may change or remove what it holds');
END;

CREATE TRIGGER job_log_not_replaced BEFORE INSERT ON job_log WHEN EXISTS (SELECT 1 FROM job_log WHERE id = NEW.id) BEGIN
    SELECT raise(ABORT, 'UNIQUE constraint failed: job_log.id');
END;

-- Keys under which a job was asked for: a request is known by its idempotency key, content by its dedupe key, and
-- the owner's own name for it is its external id.
CREATE TABLE job_key (
    kind       TEXT NOT NULL CHECK (kind IN ('idempotency', 'dedupe', 'external')),
    owner      BLOB NOT NULL,
    key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    job_id     BLOB NOT NULL,
    request    TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (kind, owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_key_job ON job_key (job_id);

-- An owner's external id names one job, live or past. A job that is tried again has its name already.
CREATE TRIGGER job_live_name AFTER INSERT ON job_live WHEN NEW.external_id IS NOT NULL BEGIN
    INSERT INTO job_key (kind, owner, key, job_id) SELECT 'external', NEW.owner, NEW.external_id, NEW.id
    WHERE NOT EXISTS (SELECT 1 FROM job_key
        WHERE kind = 'external' AND owner = NEW.owner AND key = NEW.external_id AND job_id = NEW.id);
END;

-- Files and logs belong to a job, wherever its row is.
CREATE TRIGGER job_artifact_belongs BEFORE INSERT ON job_artifact
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'job_artifact names a job that does not exist');
END;
CREATE TRIGGER job_log_belongs BEFORE INSERT ON job_log
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'job_log names a job that does not exist');
END;

-- A job that retention removes takes what belongs to it along.
CREATE TRIGGER job_past_remove AFTER DELETE ON job_past WHEN EXISTS (SELECT 1 FROM retention_pass) BEGIN
    DELETE FROM job_artifact WHERE job_id = OLD.id;
    DELETE FROM job_log WHERE job_id = OLD.id;
    DELETE FROM job_key WHERE job_id = OLD.id;
    DELETE FROM checks WHERE job_id = OLD.id;
    DELETE FROM job_download WHERE job_id = OLD.id;
END;

CREATE TABLE worker (
    id          BLOB PRIMARY KEY,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    version     TEXT NOT NULL,
    started_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    beat_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    -- Past this moment without a beat, it counts as lost.
    alive_until INTEGER NOT NULL,
    draining_at INTEGER,
    running     INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
    -- What it says of itself with each beat: its slots, and where its breakers stand.
    about       TEXT
) STRICT;

CREATE VIEW job_events AS
SELECT e.seq, t.id AS job_id, e.event AS event_type, e.from_state, e.to_state, e.actor,
    e.details -> ('$."' || lower(substr(hex(t.id), 1, 8) || '-' || substr(hex(t.id), 9, 4) || '-' || substr(hex(t.id), 13, 4)
        || '-' || substr(hex(t.id), 17, 4) || '-' || substr(hex(t.id), 21)) || '"') AS meta, e.at, h.key AS place
FROM jobs t, json_each('[' || t.history || ']') h JOIN job_journal e ON e.seq = h.value;

CREATE VIEW job_logs AS
SELECT id, job_id, level, message, at AS created_at, attempt FROM job_log;

CREATE TABLE web_key (
    name       TEXT PRIMARY KEY,
    secret     BLOB NOT NULL CHECK (length(secret) >= 32),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE UNIQUE INDEX owner_name ON owner (kind, name) WHERE name IS NOT NULL;

CREATE INDEX job_key_content ON job_key (key) WHERE kind = 'dedupe';

CREATE TABLE retention_policy (
    one                INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    source_micros      INTEGER NOT NULL DEFAULT 604800000000 CHECK (source_micros > 0),
    result_micros      INTEGER NOT NULL DEFAULT 2592000000000 CHECK (result_micros > 0),
    events_micros      INTEGER NOT NULL DEFAULT 7776000000000 CHECK (events_micros > 0),
    script_micros      INTEGER NOT NULL DEFAULT 2592000000000 CHECK (script_micros > 0),
    delete_on_download INTEGER NOT NULL DEFAULT 0 CHECK (delete_on_download IN (0, 1))
) STRICT;
INSERT INTO retention_policy DEFAULT VALUES;

CREATE TABLE blob_trash (
    storage    TEXT NOT NULL,
    path       TEXT NOT NULL,
    not_before INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (storage, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE chore (
    name     TEXT PRIMARY KEY,
    holder   BLOB,
    taken_at INTEGER,
    until    INTEGER,
    done_at  INTEGER
) STRICT;

CREATE TABLE job_download (
    job_id   BLOB PRIMARY KEY,
    count    INTEGER NOT NULL CHECK (count > 0),
    first_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    last_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE TABLE checks (
    id             BLOB PRIMARY KEY,
    job_id         BLOB NOT NULL,
    kind           TEXT NOT NULL CHECK (kind IN ('arithmetic', 'schema', 'content', 'model')),
    severity       TEXT NOT NULL CHECK (severity IN ('info', 'review', 'error')),
    code           TEXT NOT NULL CHECK (length(code) BETWEEN 1 AND 255),
    field          TEXT,
    message        TEXT NOT NULL,
    model          TEXT,
    prompt_version TEXT,
    confidence     REAL CHECK (confidence BETWEEN 0 AND 1),
    output         TEXT,
    created_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    CONSTRAINT checks_model CHECK ((kind = 'model') = (model IS NOT NULL))
) STRICT;
CREATE INDEX checks_job ON checks (job_id, id);
CREATE TRIGGER checks_no_update BEFORE UPDATE ON checks WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'checks is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER checks_no_delete BEFORE DELETE ON checks WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'checks is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER checks_belongs BEFORE INSERT ON checks
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'checks names a job that does not exist');
END;
CREATE TRIGGER job_download_belongs BEFORE INSERT ON job_download
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'job_download names a job that does not exist');
END;

CREATE TABLE webhook_endpoint (
    id         BLOB PRIMARY KEY,
    owner      BLOB NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    url        TEXT NOT NULL CHECK (length(url) BETWEEN 1 AND 2000),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    gone_at    INTEGER,
    UNIQUE (owner, url)
) STRICT;

CREATE TABLE webhook_secret (
    owner         BLOB PRIMARY KEY,
    secret        BLOB NOT NULL,
    earlier       BLOB,
    earlier_until INTEGER,
    CONSTRAINT webhook_secret_earlier CHECK ((earlier IS NULL) = (earlier_until IS NULL))
) STRICT;

CREATE TABLE webhook_delivery (
    id           BLOB PRIMARY KEY,
    owner        BLOB NOT NULL,
    job_id       BLOB NOT NULL,
    external_id  TEXT,
    state        TEXT NOT NULL,
    error_code   TEXT,
    url          TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    answer       INTEGER,
    problem      TEXT,
    created_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    delivered_at INTEGER,
    CONSTRAINT webhook_delivery_delivered CHECK ((status = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE status = 'pending';
CREATE INDEX webhook_delivery_job ON webhook_delivery (job_id);
