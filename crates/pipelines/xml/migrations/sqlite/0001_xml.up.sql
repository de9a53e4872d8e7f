-- What people corrected in results, and documents by the names that people query them by; the same shape and rules as on
-- PostgreSQL.

CREATE TABLE revisions (
    id           BLOB PRIMARY KEY,
    job_id       BLOB NOT NULL,
    field        TEXT NOT NULL CHECK (length(field) BETWEEN 1 AND 255),
    before_value TEXT,
    after_value  TEXT,
    page         INTEGER CHECK (page > 0),
    box          TEXT CHECK (json_type(box) = 'array' AND json_array_length(box) = 4),
    author       BLOB,
    created_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    CONSTRAINT revisions_change CHECK (before_value IS NOT after_value),
    CONSTRAINT revisions_place CHECK (box IS NULL OR page IS NOT NULL)
) STRICT;
CREATE INDEX revisions_job ON revisions (job_id, id);
CREATE TRIGGER revisions_no_update BEFORE UPDATE ON revisions WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'revisions is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER revisions_no_delete BEFORE DELETE ON revisions WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'revisions is append-only: only retention may change or remove what it holds');
END;

CREATE TABLE training_samples (
    id              BLOB PRIMARY KEY,
    job_id          BLOB NOT NULL,
    revision_id     BLOB NOT NULL UNIQUE REFERENCES revisions (id) ON DELETE CASCADE,
    mapping         TEXT NOT NULL,
    document_sha256 TEXT,
    field           TEXT NOT NULL,
    read_value      TEXT,
    expected_value  TEXT,
    page            INTEGER,
    box             TEXT,
    created_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;
CREATE INDEX training_samples_job ON training_samples (job_id);
CREATE TRIGGER training_samples_no_update BEFORE UPDATE ON training_samples
WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'training_samples is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER training_samples_no_delete BEFORE DELETE ON training_samples WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'training_samples is append-only: only retention may change or remove what it holds');
END;

CREATE TRIGGER revisions_belongs BEFORE INSERT ON revisions
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'revisions names a job that does not exist');
END;

CREATE TRIGGER job_past_remove_document AFTER DELETE ON job_past WHEN EXISTS (SELECT 1 FROM retention_pass) BEGIN
    DELETE FROM training_samples WHERE job_id = OLD.id;
    DELETE FROM revisions WHERE job_id = OLD.id;
END;

CREATE INDEX job_past_measured ON job_past (kind, id) WHERE pipeline = 'xml' AND state = 'complete';

CREATE VIEW documents AS
SELECT
    j.id,
    j.session_id AS owner_session_id,
    j.user_id,
    j.organisation_id,
    j.input ->> '$.document.name' AS original_filename,
    coalesce(s.content_type, 'application/pdf') AS content_type,
    CAST(CASE json_type(j.input, '$.document.bytes') WHEN 'integer' THEN j.input ->> '$.document.bytes' END AS INTEGER)
        AS bytes,
    j.input ->> '$.document.sha256' AS sha256,
    j.type AS mapping,
    j.state AS status,
    s.path AS upload_path,
    r.path AS result_path,
    j.error_code,
    j.error_message,
    j.created_at,
    j.updated_at,
    j.queued_at,
    j.started_at,
    CASE WHEN j.state = 'complete' THEN j.finished_at END AS completed_at,
    CASE WHEN j.state = 'failed' THEN j.finished_at END AS failed_at,
    j.worker_id AS leased_by,
    j.lease_expires_at,
    j.attempt_count,
    CASE WHEN r.id IS NOT NULL THEN r.created_at + p.result_micros ELSE s.created_at + p.source_micros END AS expires_at,
    coalesce(d.count, 0) AS download_count,
    d.first_at AS first_downloaded_at,
    j.input ->> '$.document.duplicate_of' AS duplicate_of
FROM jobs j
CROSS JOIN retention_policy p
LEFT JOIN job_artifact s ON s.job_id = j.id AND s.role = 'source'
LEFT JOIN job_artifact r ON r.job_id = j.id AND r.role = 'result'
LEFT JOIN job_download d ON d.job_id = j.id
WHERE j.pipeline = 'xml';
