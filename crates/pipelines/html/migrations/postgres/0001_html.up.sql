-- What callers of the html service know their jobs by.

CREATE VIEW html_jobs WITH (security_invoker) AS
SELECT id, external_id, state AS status, input ->> 'input_s3_path' AS input_s3_path,
    input ->> 'output_s3_prefix' AS output_s3_prefix, config AS conversion_config, priority, retry_count,
    engine_version, created_at, started_at, finished_at, error_message, organisation_id
FROM jobs WHERE pipeline = 'html';

CREATE VIEW job_assets WITH (security_invoker) AS
SELECT id, job_id,
    CASE WHEN content_type LIKE 'text/html%' THEN 'html' WHEN content_type LIKE 'text/css%' THEN 'css'
        WHEN content_type LIKE 'text/javascript%' THEN 'js' WHEN content_type = 'image/svg+xml' THEN 'svg'
        WHEN content_type LIKE 'font/%' THEN 'font' ELSE 'image' END AS asset_type,
    name, path AS s3_path, bytes AS file_size_bytes, sha256 AS content_hash, created_at
FROM job_artifact WHERE role = 'asset';

DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT bool_and(coalesce('security_invoker=true' = ANY (reloptions), FALSE)) FROM pg_class
        WHERE oid IN ('html_jobs'::regclass, 'job_assets'::regclass)) THEN
        GRANT SELECT ON html_jobs, job_assets TO ode_api;
    END IF;
END $$;
