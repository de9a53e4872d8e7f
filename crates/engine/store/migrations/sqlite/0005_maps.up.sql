-- Maps that people keep, maps that are frozen for print, and which job prints which; the same shape and rules as on
-- PostgreSQL. Digests are compared when a map is read: SQLite has no function for them.

CREATE TABLE user_maps (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    session_id      BLOB,
    user_id         BLOB,
    organisation_id BLOB,
    name            TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    data            TEXT,
    version         INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    updated_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    deleted_at      INTEGER,
    CONSTRAINT user_maps_features CHECK (data IS NULL OR (json_valid(data) AND data ->> '$.type' IS 'FeatureCollection'
        AND json_type(data, '$.features') IS 'array')),
    CONSTRAINT user_maps_deleted CHECK ((data IS NULL) = (deleted_at IS NOT NULL)),
    CONSTRAINT user_maps_one_owner CHECK (session_id IS NULL OR organisation_id IS NULL)
) STRICT;
CREATE INDEX user_maps_session ON user_maps (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX user_maps_user ON user_maps (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX user_maps_organisation ON user_maps (organisation_id, id) WHERE organisation_id IS NOT NULL;

CREATE TABLE printable_maps (
    id               BLOB PRIMARY KEY CHECK (length(id) = 16),
    user_map_id      BLOB REFERENCES user_maps (id),
    user_map_version INTEGER,
    session_id       BLOB,
    user_id          BLOB,
    organisation_id  BLOB,
    data             TEXT NOT NULL,
    sha256           TEXT NOT NULL,
    -- What lists show of it, so that they need not read all of it.
    title            TEXT GENERATED ALWAYS AS (data ->> '$.title.text') STORED,
    page_size        TEXT GENERATED ALWAYS AS (data ->> '$.page.size') STORED,
    page             TEXT GENERATED ALWAYS AS (data -> '$.page') STORED,
    created_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    CONSTRAINT printable_maps_form CHECK (json_valid(data) AND data ->> '$.schema' IS 1),
    CONSTRAINT printable_maps_digest CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT printable_maps_made_of CHECK ((user_map_id IS NULL) = (user_map_version IS NULL)),
    CONSTRAINT printable_maps_one_owner CHECK (session_id IS NULL OR organisation_id IS NULL)
) STRICT;
CREATE INDEX printable_maps_session ON printable_maps (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX printable_maps_user ON printable_maps (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX printable_maps_organisation ON printable_maps (organisation_id, id) WHERE organisation_id IS NOT NULL;
CREATE INDEX printable_maps_user_map ON printable_maps (user_map_id) WHERE user_map_id IS NOT NULL;
CREATE TRIGGER printable_maps_frozen BEFORE UPDATE ON printable_maps
WHEN NOT (NEW.id IS OLD.id AND NEW.user_map_id IS OLD.user_map_id AND NEW.user_map_version IS OLD.user_map_version
    AND NEW.session_id IS OLD.session_id AND NEW.organisation_id IS OLD.organisation_id AND NEW.data IS OLD.data
    AND NEW.sha256 IS OLD.sha256 AND NEW.created_at IS OLD.created_at
    AND coalesce(OLD.user_id, NEW.user_id) IS NEW.user_id) BEGIN
    SELECT raise(ABORT, 'printable_maps is frozen: make a new map instead of changing one');
END;
CREATE TRIGGER printable_maps_kept BEFORE DELETE ON printable_maps WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'printable_maps is append-only: only retention may change or remove what it holds');
END;
-- A row that replaces another would delete it without its trigger being asked.
CREATE TRIGGER printable_maps_not_replaced BEFORE INSERT ON printable_maps
WHEN EXISTS (SELECT 1 FROM printable_maps WHERE id = NEW.id) BEGIN
    SELECT raise(ABORT, 'printable_maps is frozen: make a new map instead of changing one');
END;

CREATE TABLE map_print (
    job_id           BLOB PRIMARY KEY,
    printable_map_id BLOB NOT NULL REFERENCES printable_maps (id)
) STRICT;
CREATE INDEX map_print_map ON map_print (printable_map_id, job_id);
CREATE TRIGGER map_print_no_update BEFORE UPDATE ON map_print WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'map_print is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER map_print_no_delete BEFORE DELETE ON map_print WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'map_print is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER map_print_not_replaced BEFORE INSERT ON map_print
WHEN EXISTS (SELECT 1 FROM map_print WHERE job_id = NEW.job_id AND printable_map_id <> NEW.printable_map_id) BEGIN
    SELECT raise(ABORT, 'map_print is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER map_print_belongs BEFORE INSERT ON map_print
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'map_print names a job that does not exist');
END;

CREATE TRIGGER job_live_print_map AFTER INSERT ON job_live
WHEN NEW.pipeline = 'print' AND json_type(NEW.input, '$.printable_map_id') IS NOT NULL BEGIN
    INSERT INTO map_print (job_id, printable_map_id)
    SELECT NEW.id, m.id FROM printable_maps m
    WHERE m.id = unhex(NEW.input ->> '$.printable_map_id', '-')
        AND (m.organisation_id = NEW.organisation_id OR m.user_id = NEW.user_id OR m.session_id = NEW.session_id
            OR coalesce(m.organisation_id, m.user_id, m.session_id, NEW.organisation_id, NEW.user_id, NEW.session_id)
                IS NULL)
    -- A job that is tried again has its row already.
    ON CONFLICT (job_id) DO NOTHING;
    SELECT raise(ABORT, 'job_live names a printable map that its owner does not have')
    WHERE NOT EXISTS (SELECT 1 FROM map_print WHERE job_id = NEW.id);
END;
CREATE TRIGGER job_past_remove_map_print AFTER DELETE ON job_past
WHEN OLD.pipeline = 'print' AND EXISTS (SELECT 1 FROM retention_pass) BEGIN
    DELETE FROM map_print WHERE job_id = OLD.id;
END;

CREATE UNIQUE INDEX job_artifact_one_export ON job_artifact (job_id) WHERE role = 'export';
CREATE INDEX job_artifact_export ON job_artifact (sha256) WHERE role = 'export';
CREATE TRIGGER job_artifact_export_not_replaced BEFORE INSERT ON job_artifact
WHEN NEW.role = 'export' AND EXISTS (SELECT 1 FROM job_artifact WHERE job_id = NEW.job_id AND role = 'export') BEGIN
    SELECT raise(ABORT, 'job_artifact_one_export is unique: a job has one export');
END;

-- Past its export, a job has one: files are published before the job moves on.
CREATE TRIGGER job_live_exported BEFORE UPDATE OF state ON job_live
WHEN NEW.pipeline = 'print' AND NEW.state IN ('export_complete', 'ordering', 'ordered')
    AND NOT EXISTS (SELECT 1 FROM job_artifact WHERE job_id = NEW.id AND role = 'export') BEGIN
    SELECT raise(ABORT, 'job_live_exported: a print job that is past its export has none');
END;
CREATE TRIGGER job_live_born_exported BEFORE INSERT ON job_live
WHEN NEW.pipeline = 'print' AND NEW.state IN ('export_complete', 'ordering', 'ordered')
    AND NOT EXISTS (SELECT 1 FROM job_artifact WHERE job_id = NEW.id AND role = 'export') BEGIN
    SELECT raise(ABORT, 'job_live_exported: a print job that is past its export has none');
END;

CREATE VIEW print_jobs AS
SELECT
    j.id,
    p.printable_map_id,
    j.state,
    e.path AS export_file_path,
    (SELECT max(h.at) FROM job_events h WHERE h.job_id = j.id AND h.to_state = 'exporting') AS export_started_at,
    e.created_at AS export_completed_at,
    CASE WHEN j.state = 'export_failed' THEN j.error_message END AS export_error,
    j.retry_count AS export_retry_count,
    j.created_at,
    j.updated_at
FROM jobs j
LEFT JOIN map_print p ON p.job_id = j.id
LEFT JOIN job_artifact e ON e.job_id = j.id AND e.role = 'export'
WHERE j.pipeline = 'print';

CREATE VIEW print_job_events AS
SELECT h.seq AS id, j.id AS print_job_id, h.from_state, h.to_state, h.meta AS metadata, h.at AS occurred_at
FROM jobs j JOIN job_events h ON h.job_id = j.id WHERE j.pipeline = 'print';
