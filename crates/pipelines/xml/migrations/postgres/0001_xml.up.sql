-- What people corrected in results, and documents by the names that people query them by.

-- What a person changed in a result: a field by its name or path, before and after, and where on the page it stands.
CREATE TABLE revisions (
    id           uuid PRIMARY KEY,
    job_id       uuid NOT NULL,
    field        text NOT NULL CHECK (length(field) BETWEEN 1 AND 255),
    before_value text,
    after_value  text,
    page         integer CHECK (page > 0),
    box          jsonb CHECK (jsonb_typeof(box) = 'array' AND jsonb_array_length(box) = 4),
    author       uuid,
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT revisions_change CHECK (before_value IS DISTINCT FROM after_value),
    CONSTRAINT revisions_place CHECK (box IS NULL OR page IS NOT NULL)
);
CREATE INDEX revisions_job ON revisions (job_id, id);
CREATE TRIGGER revisions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON revisions
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- The same as an example to learn from, complete in itself.
CREATE TABLE training_samples (
    id              uuid PRIMARY KEY,
    job_id          uuid NOT NULL,
    revision_id     uuid NOT NULL UNIQUE REFERENCES revisions (id) ON DELETE CASCADE,
    mapping         text NOT NULL,
    document_sha256 text,
    field           text NOT NULL,
    read_value      text,
    expected_value  text,
    page            integer,
    box             jsonb,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX training_samples_job ON training_samples (job_id);
CREATE TRIGGER training_samples_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON training_samples
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

CREATE CONSTRAINT TRIGGER revisions_belongs AFTER INSERT ON revisions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();

CREATE FUNCTION ode_remove_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM training_samples WHERE job_id = OLD.id;
    DELETE FROM revisions WHERE job_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_remove_document AFTER DELETE ON job_past FOR EACH ROW
    WHEN (current_setting('ode.retention', true) = 'on') EXECUTE FUNCTION ode_remove_document();

-- How long conversions took, by mapping, newest first.
CREATE INDEX job_past_measured ON job_past (kind, id) WHERE pipeline = 'xml' AND state = 'complete';

-- Documents by the names that people query them by.
CREATE VIEW documents WITH (security_invoker) AS
SELECT
    j.id,
    j.session_id AS owner_session_id,
    j.user_id,
    j.organisation_id,
    j.input -> 'document' ->> 'name' AS original_filename,
    coalesce(s.content_type, 'application/pdf') AS content_type,
    CASE jsonb_typeof(j.input -> 'document' -> 'bytes') WHEN 'number'
        THEN (j.input -> 'document' ->> 'bytes')::numeric::bigint END AS bytes,
    j.input -> 'document' ->> 'sha256' AS sha256,
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
    CASE WHEN r.id IS NOT NULL THEN r.created_at + p.result_micros * interval '1 microsecond'
        ELSE s.created_at + p.source_micros * interval '1 microsecond' END AS expires_at,
    coalesce(d.count, 0) AS download_count,
    d.first_at AS first_downloaded_at,
    j.input -> 'document' ->> 'duplicate_of' AS duplicate_of
FROM jobs j
CROSS JOIN retention_policy p
LEFT JOIN job_artifact s ON s.job_id = j.id AND s.role = 'source'
LEFT JOIN job_artifact r ON r.job_id = j.id AND r.role = 'result'
LEFT JOIN job_download d ON d.job_id = j.id
WHERE j.pipeline = 'xml';

ALTER TABLE revisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE training_samples ENABLE ROW LEVEL SECURITY;

CREATE POLICY see_own ON revisions FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY create_own ON revisions FOR INSERT TO ode_api WITH CHECK (ode_is_own(job_id));
CREATE POLICY see_own ON training_samples FOR SELECT TO ode_api USING (ode_is_own(job_id));

GRANT SELECT ON revisions, training_samples TO ode_api;
GRANT INSERT ON revisions TO ode_api;

DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class
        WHERE oid = 'documents'::regclass) THEN
        GRANT SELECT ON documents TO ode_api;
    END IF;
END $$;
