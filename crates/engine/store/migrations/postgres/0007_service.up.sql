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

-- For a whole batch at once: hardly any job has somebody to tell, and a call for each would cost more than its end.
CREATE FUNCTION ode_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_delivery (id, owner, job_id, external_id, state, error_code, url)
    SELECT gen_random_uuid(), told.* FROM (
        SELECT w.owner, e.id, e.external_id, e.state, e.error_code, w.url
        FROM ended e JOIN webhook_endpoint w ON w.owner = coalesce(e.organisation_id, e.user_id, e.session_id,
            '00000000-0000-0000-0000-000000000000')
        WHERE e.pipeline IN ('html', 'script') AND w.gone_at IS NULL
        UNION
        SELECT coalesce(e.organisation_id, e.user_id, e.session_id, '00000000-0000-0000-0000-000000000000'),
            e.id, e.external_id, e.state, e.error_code, e.input ->> 'webhook_url'
        FROM ended e WHERE e.pipeline = 'html' AND e.input ->> 'webhook_url' IS NOT NULL) AS told;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_announce AFTER INSERT ON job_past REFERENCING NEW TABLE AS ended
    FOR EACH STATEMENT EXECUTE FUNCTION ode_announce();

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
