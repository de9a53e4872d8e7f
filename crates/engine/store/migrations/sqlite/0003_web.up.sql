-- What the web side needs of its own; see the file of the same name for PostgreSQL.

CREATE TABLE web_key (
    name       TEXT PRIMARY KEY,
    secret     BLOB NOT NULL CHECK (length(secret) >= 32),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE UNIQUE INDEX owner_name ON owner (kind, name) WHERE name IS NOT NULL;

CREATE INDEX job_key_content ON job_key (key) WHERE kind = 'dedupe';
