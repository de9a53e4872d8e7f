-- What scripts need beside being jobs; the same shape and rules as on PostgreSQL.

CREATE TABLE script_type (
    name           TEXT PRIMARY KEY,
    title          TEXT NOT NULL,
    version        TEXT NOT NULL,
    digest         TEXT NOT NULL,
    timeout_ms     INTEGER NOT NULL CHECK (timeout_ms BETWEEN 1 AND 604800000),
    retries_max    INTEGER NOT NULL CHECK (retries_max >= 0),
    retry_delay_ms INTEGER NOT NULL CHECK (retry_delay_ms >= 0),
    published_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE TRIGGER job_live_script_defaults AFTER INSERT ON job_live
WHEN NEW.pipeline = 'script' AND (NEW.retries_max IS NULL OR NEW.timeout_ms IS NULL) BEGIN
    UPDATE job_live SET retries_max = coalesce(job_live.retries_max, t.retries_max),
        timeout_ms = coalesce(job_live.timeout_ms, t.timeout_ms)
    FROM script_type t WHERE job_live.id = NEW.id AND t.name = NEW.kind;
END;

CREATE TABLE seal_key (
    id         TEXT PRIMARY KEY,
    side       TEXT NOT NULL CHECK (side IN ('worker', 'web')),
    public     BLOB NOT NULL CHECK (length(public) = 32),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    retired_at INTEGER
) STRICT;

CREATE TABLE script_secret (
    job_id      BLOB NOT NULL,
    part        TEXT NOT NULL CHECK (part IN ('input', 'result')),
    id          BLOB NOT NULL,
    key_id      TEXT NOT NULL,
    wrapped     BLOB,
    content     BLOB,
    keep_micros INTEGER NOT NULL CHECK (keep_micros >= 0),
    created_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    shred_at    INTEGER,
    shredded_at INTEGER,
    PRIMARY KEY (job_id, part),
    CONSTRAINT script_secret_shredded CHECK (
        (wrapped IS NULL) + (content IS NULL) = iif(shredded_at IS NULL, 0, 2))
) STRICT, WITHOUT ROWID;
CREATE INDEX script_secret_due ON script_secret (shred_at) WHERE shredded_at IS NULL AND shred_at IS NOT NULL;
CREATE INDEX script_secret_key ON script_secret (key_id) WHERE shredded_at IS NULL;

CREATE TABLE script_checkpoint (
    job_id     BLOB NOT NULL,
    key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    data       TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE script_run (
    job_id           BLOB NOT NULL,
    attempt          INTEGER NOT NULL,
    worker           BLOB NOT NULL,
    host             TEXT NOT NULL,
    version          TEXT NOT NULL,
    digest           TEXT NOT NULL,
    pid              INTEGER,
    start_ticks      INTEGER,
    boot_id          TEXT,
    timeout_at       INTEGER,
    steps            TEXT NOT NULL DEFAULT '[]',
    progress_percent INTEGER NOT NULL DEFAULT 0 CHECK (progress_percent BETWEEN 0 AND 100),
    progress_message TEXT,
    current_step     INTEGER NOT NULL DEFAULT 0 CHECK (current_step >= 0),
    total_steps      INTEGER NOT NULL DEFAULT 0 CHECK (total_steps >= 0),
    error_code       TEXT,
    created_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE script_order (
    job_id BLOB PRIMARY KEY,
    owner  BLOB NOT NULL,
    turn   TEXT CHECK (length(turn) BETWEEN 1 AND 255),
    batch  BLOB,
    place  INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER
) STRICT;
CREATE INDEX script_order_turn ON script_order (owner, turn) WHERE turn IS NOT NULL;
CREATE INDEX script_order_batch ON script_order (batch, place) WHERE batch IS NOT NULL;

CREATE TABLE script_need (
    job_id BLOB NOT NULL,
    needs  BLOB NOT NULL,
    PRIMARY KEY (job_id, needs)
) STRICT, WITHOUT ROWID;
CREATE INDEX script_need_needs ON script_need (needs);

CREATE TABLE script_turn (
    owner  BLOB NOT NULL,
    turn   TEXT NOT NULL,
    holder BLOB NOT NULL UNIQUE,
    PRIMARY KEY (owner, turn)
) STRICT, WITHOUT ROWID;

-- With the end of a script its secrets go, and those who waited for it are to be looked at.
CREATE TRIGGER job_past_script_ended AFTER INSERT ON job_past WHEN NEW.pipeline = 'script' BEGIN
    UPDATE script_secret SET wrapped = NULL, content = NULL, shredded_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE job_id = NEW.id AND shredded_at IS NULL
        AND (keep_micros = 0 OR NEW.state <> iif(part = 'input', 'failed', 'completed'));
    UPDATE script_secret SET shred_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + keep_micros
    WHERE job_id = NEW.id AND shredded_at IS NULL;
    UPDATE job_live SET run_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE id IN (SELECT job_id FROM script_need WHERE needs = NEW.id) AND lane IS NULL
        AND coalesce(run_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), TRUE);
    DELETE FROM script_turn WHERE holder = NEW.id;
    UPDATE job_live SET run_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE id = (SELECT l.id FROM script_order w JOIN script_order o ON o.owner = w.owner AND o.turn = w.turn
            JOIN job_live l ON l.id = o.job_id
        WHERE w.job_id = NEW.id AND l.lane IS NULL AND l.id <> NEW.id
            AND coalesce(l.run_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), TRUE)
            AND NOT EXISTS (SELECT 1 FROM script_turn t WHERE t.owner = w.owner AND t.turn = w.turn)
            AND NOT EXISTS (SELECT 1 FROM script_need n JOIN job_live e ON e.id = n.needs
                WHERE n.job_id = l.id AND e.id <> NEW.id)
        ORDER BY l.priority DESC, l.id LIMIT 1);
END;

CREATE TRIGGER job_past_remove_script AFTER DELETE ON job_past
WHEN OLD.pipeline = 'script' AND EXISTS (SELECT 1 FROM retention_pass) BEGIN
    DELETE FROM script_secret WHERE job_id = OLD.id;
    DELETE FROM script_checkpoint WHERE job_id = OLD.id;
    DELETE FROM script_run WHERE job_id = OLD.id;
    DELETE FROM script_need WHERE job_id = OLD.id;
    DELETE FROM script_order WHERE job_id = OLD.id;
END;

CREATE INDEX job_live_script_restaurant ON job_live (metadata ->> 'restaurant_id', id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_restaurant ON job_past (metadata ->> 'restaurant_id', id) WHERE pipeline = 'script';
CREATE INDEX job_live_script_creator ON job_live (created_by, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_creator ON job_past (created_by, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_type ON job_past (kind, state, id) WHERE pipeline = 'script';
CREATE INDEX job_past_script_created ON job_past (created_at) WHERE pipeline = 'script';
