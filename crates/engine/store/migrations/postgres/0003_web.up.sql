-- What the web side needs of its own: secrets that all its processes share, and owners by name.

-- Secrets under which cookies and links are signed, so that every web process accepts what another has made.
CREATE TABLE web_key (
    name       text PRIMARY KEY,
    secret     bytea NOT NULL CHECK (octet_length(secret) >= 32),
    created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE web_key ENABLE ROW LEVEL SECURITY;

-- A person or an organisation that gets a second key is the same one.
CREATE UNIQUE INDEX owner_name ON owner (kind, name) WHERE name IS NOT NULL;

-- Finds content again whoever sent it, where results are shared.
CREATE INDEX job_key_content ON job_key (key) WHERE kind = 'dedupe';
