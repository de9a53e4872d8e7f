-- The engine's tables; the same shape and rules as on PostgreSQL, in SQLite's types: ids are 16-byte blobs,
-- moments are microseconds since 1970, JSON is text.

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

CREATE TABLE job (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    pipeline        TEXT NOT NULL CHECK (pipeline IN ('xml', 'html', 'print', 'script')),
    kind            TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 255),
    session_id      BLOB,
    user_id         BLOB,
    organisation_id BLOB,
    created_by      BLOB,
    external_id     TEXT CHECK (length(external_id) BETWEEN 1 AND 255),
    priority        INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000 AND 1000),
    timeout_ms      INTEGER CHECK (timeout_ms BETWEEN 1 AND 604800000),
    created_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    input           TEXT NOT NULL,
    config          TEXT,
    metadata        TEXT,
    -- How it ended; absent while it is live.
    updated_at      INTEGER,
    queued_at       INTEGER,
    started_at      INTEGER,
    finished_at     INTEGER,
    fence           INTEGER,
    attempts        INTEGER,
    retries         INTEGER,
    retries_max     INTEGER,
    state           TEXT,
    advance         INTEGER,
    engine_version  TEXT,
    history         TEXT,
    result          TEXT,
    error_code      TEXT,
    error_message   TEXT,
    error_detail    TEXT,
    CONSTRAINT job_state_of_pipeline CHECK (state IS NULL
        OR (pipeline = 'html' AND state IN ('completed', 'failed'))
        OR (pipeline = 'xml' AND state IN ('complete', 'failed'))
        OR (pipeline = 'script' AND state IN ('completed', 'failed', 'timed_out', 'cancelled'))
        OR (pipeline = 'print' AND state IN ('fulfilled', 'export_failed', 'order_failed'))),
    CONSTRAINT job_ended_is_dated CHECK ((state IS NULL) = (finished_at IS NULL)),
    CONSTRAINT job_result_only_in_success CHECK (result IS NULL
        OR (state IS NOT NULL AND state IN ('complete', 'completed', 'fulfilled'))),
    CONSTRAINT job_error_exactly_in_failure CHECK (
        (error_code IS NOT NULL AND error_message IS NOT NULL)
            = (state IS NOT NULL AND state IN ('failed', 'timed_out', 'export_failed', 'order_failed'))
        AND (error_code IS NULL) = (error_message IS NULL)),
    CONSTRAINT job_one_owner CHECK (session_id IS NULL OR organisation_id IS NULL)
) STRICT;
CREATE INDEX job_session ON job (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX job_user ON job (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX job_organisation ON job (organisation_id, id) WHERE organisation_id IS NOT NULL;
CREATE INDEX job_creator ON job (created_by, id) WHERE created_by IS NOT NULL;
CREATE INDEX job_failed ON job (id) WHERE error_code IS NOT NULL;
CREATE UNIQUE INDEX job_external_id ON job
    (coalesce(organisation_id, user_id, session_id, x'00000000000000000000000000000000'), external_id)
    WHERE external_id IS NOT NULL;
CREATE TRIGGER job_touch AFTER UPDATE ON job FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.finished_at IS OLD.finished_at BEGIN
    UPDATE job SET updated_at = max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), coalesce(OLD.updated_at, 0) + 1) WHERE id = NEW.id;
END;

CREATE TABLE job_live (
    id               BLOB PRIMARY KEY CHECK (length(id) = 16),
    -- Whose turn it is: the owner's key, nil for the operator.
    owner            BLOB NOT NULL,
    updated_at       INTEGER,
    fence            INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    -- Priority, turned round so that the index is read in one direction.
    rank             INTEGER NOT NULL DEFAULT 0,
    -- As many as the handler allows, where it does not say.
    retries_max      INTEGER CHECK (retries_max >= 0),
    attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    retries          INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0),
    crashes          INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    pipeline         TEXT NOT NULL,
    -- The line it waits or runs in; none while it is held.
    lane             TEXT CHECK (lane IN ('xml', 'html', 'print.export', 'print.order', 'script')),
    state            TEXT NOT NULL,
    history          TEXT NOT NULL,
    advance          INTEGER,
    run_at           INTEGER,
    -- When it last became eligible, where that was not at its creation.
    queued_at        INTEGER,
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
) STRICT, WITHOUT ROWID;
-- The line: highest priority, then whose turn, then oldest (ids are in order of creation). Rows that a worker
-- holds leave it: unlike PostgreSQL, SQLite rewrites them anyway, and a claim need not step over them.
CREATE INDEX job_live_line ON job_live (lane, rank, owner, id) WHERE lane IS NOT NULL AND worker IS NULL;
CREATE INDEX job_live_due ON job_live (run_at) WHERE lane IS NULL AND run_at IS NOT NULL;
CREATE TRIGGER job_live_touch AFTER UPDATE ON job_live FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.started_at IS OLD.started_at BEGIN
    UPDATE job_live SET updated_at = max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), coalesce(OLD.updated_at, 0) + 1) WHERE id = NEW.id;
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

CREATE TABLE job_artifact (
    id           BLOB PRIMARY KEY,
    job_id       BLOB NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    role         TEXT NOT NULL CHECK (role IN ('source', 'result', 'asset', 'log', 'screenshot')),
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

CREATE TABLE job_log (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id  BLOB NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    level   TEXT NOT NULL CHECK (level IN ('info', 'warn', 'error')),
    message TEXT NOT NULL,
    at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;
CREATE INDEX job_log_job ON job_log (job_id, id);
CREATE TRIGGER job_log_no_update BEFORE UPDATE ON job_log WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'job_log is append-only: only retention may change or remove what it holds');
END;

-- Keys under which a job was asked for: a request is known by its idempotency key, content by its dedupe key.
CREATE TABLE job_key (
    kind       TEXT NOT NULL CHECK (kind IN ('idempotency', 'dedupe')),
    owner      BLOB NOT NULL,
    key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    job_id     BLOB NOT NULL,
    request    TEXT,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (kind, owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_key_job ON job_key (job_id);

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
    running     INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0)
) STRICT;

CREATE VIEW jobs AS
SELECT
    j.id,
    j.pipeline,
    j.kind AS type,
    coalesce(j.state, l.state) AS state,
    CASE
        WHEN j.state IN ('complete', 'completed', 'fulfilled') THEN 'done'
        WHEN j.state = 'cancelled' THEN 'cancelled'
        WHEN j.state IS NOT NULL THEN 'failed'
        WHEN l.worker IS NOT NULL THEN 'running'
        WHEN l.lane IS NOT NULL THEN 'ready'
        ELSE 'held' END AS phase,
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
    CASE WHEN j.state IN ('complete', 'completed', 'fulfilled') THEN 100
        ELSE coalesce(l.progress_percent, 0) END AS progress_percent,
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
    max(j.created_at, coalesce(j.updated_at, 0), coalesce(j.finished_at, 0), coalesce(l.updated_at, 0),
        coalesce(l.started_at, 0)) AS updated_at,
    coalesce(j.history, l.history) AS history
FROM job j LEFT JOIN job_live l ON l.id = j.id;

CREATE VIEW job_events AS
SELECT e.seq, t.id AS job_id, e.event AS event_type, e.from_state, e.to_state, e.actor,
    e.details -> ('$."' || lower(substr(hex(t.id), 1, 8) || '-' || substr(hex(t.id), 9, 4) || '-' || substr(hex(t.id), 13, 4)
        || '-' || substr(hex(t.id), 17, 4) || '-' || substr(hex(t.id), 21)) || '"') AS meta, e.at, h.key AS place
FROM jobs t, json_each('[' || t.history || ']') h JOIN job_journal e ON e.seq = h.value;
