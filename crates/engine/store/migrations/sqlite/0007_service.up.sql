-- What callers of the html service know their jobs by, and what they are told when one ends; the same shape and rules
-- as on PostgreSQL.

CREATE VIEW html_jobs AS
SELECT id, external_id, state AS status, input ->> '$.input_s3_path' AS input_s3_path,
    input ->> '$.output_s3_prefix' AS output_s3_prefix, config AS conversion_config, priority, retry_count,
    engine_version, created_at, started_at, finished_at, error_message, organisation_id
FROM jobs WHERE pipeline = 'html';

CREATE VIEW job_assets AS
SELECT id, job_id,
    CASE WHEN content_type LIKE 'text/html%' THEN 'html' WHEN content_type LIKE 'text/css%' THEN 'css'
        WHEN content_type LIKE 'text/javascript%' THEN 'js' WHEN content_type = 'image/svg+xml' THEN 'svg'
        WHEN content_type LIKE 'font/%' THEN 'font' ELSE 'image' END AS asset_type,
    name, path AS s3_path, bytes AS file_size_bytes, sha256 AS content_hash, created_at
FROM job_artifact WHERE role = 'asset';

CREATE VIEW job_logs AS
SELECT id, job_id, level, message, at AS created_at, attempt FROM job_log;

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

-- Looked at closely only where somebody may be told, which is rare.
CREATE TRIGGER job_past_announce AFTER INSERT ON job_past WHEN NEW.pipeline IN ('html', 'script')
    AND (instr(NEW.input, '"webhook_url"') OR EXISTS (SELECT 1 FROM webhook_endpoint
        WHERE gone_at IS NULL
            AND owner = coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16)))) BEGIN
    INSERT INTO webhook_delivery (id, owner, job_id, external_id, state, error_code, url)
    SELECT randomblob(16), coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16)), NEW.id,
        NEW.external_id, NEW.state, NEW.error_code, told.url
    FROM (SELECT url FROM webhook_endpoint
            WHERE gone_at IS NULL AND owner = coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16))
        UNION SELECT iif(NEW.pipeline = 'html', NEW.input ->> '$.webhook_url', NULL)) AS told
    WHERE told.url IS NOT NULL;
END;
