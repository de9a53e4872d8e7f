-- What callers of the html service know their jobs by, and what they are told when one ends.

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

CREATE VIEW job_logs WITH (security_invoker) AS
SELECT id, job_id, level, message, at AS created_at, attempt FROM job_log;

-- Addresses that an owner wants to be told at, whichever of its jobs ends.
CREATE TABLE webhook_endpoint (
    id         uuid PRIMARY KEY,
    owner      uuid NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    url        text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (owner, url)
);

-- What messages to an owner are signed with.
CREATE TABLE webhook_secret (
    owner  uuid PRIMARY KEY,
    secret bytea NOT NULL
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

CREATE FUNCTION ode_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose uuid := coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id,
        '00000000-0000-0000-0000-000000000000');
BEGIN
    INSERT INTO webhook_delivery (id, owner, job_id, external_id, state, error_code, url)
    SELECT gen_random_uuid(), whose, NEW.id, NEW.external_id, NEW.state, NEW.error_code, told.url
    FROM (SELECT url FROM webhook_endpoint WHERE owner = whose UNION SELECT CASE NEW.pipeline WHEN 'html' THEN NEW.input ->> 'webhook_url' END) AS told
    WHERE told.url IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_announce AFTER INSERT ON job_past FOR EACH ROW WHEN (NEW.pipeline IN ('html', 'script'))
    EXECUTE FUNCTION ode_announce();

ALTER TABLE webhook_endpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_delivery ENABLE ROW LEVEL SECURITY;

DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT bool_and(coalesce('security_invoker=true' = ANY (reloptions), FALSE)) FROM pg_class
        WHERE oid IN ('html_jobs'::regclass, 'job_assets'::regclass, 'job_logs'::regclass)) THEN
        GRANT SELECT ON html_jobs, job_assets, job_logs TO ode_api;
    END IF;
END $$;
