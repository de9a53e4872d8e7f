-- Maps that people keep, maps that are frozen for print, which job prints which, and their orders at a print provider; the
-- same shape and rules as on PostgreSQL. Digests are compared when a map is read: SQLite has no function for them.

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

CREATE TABLE spend_caps (
    organisation_id BLOB PRIMARY KEY,
    currency        TEXT NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    order_cents     INTEGER NOT NULL CHECK (order_cents > 0),
    month_cents     INTEGER NOT NULL CHECK (month_cents >= order_cents),
    updated_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

CREATE TABLE print_orders (
    job_id            BLOB PRIMARY KEY CHECK (length(job_id) = 16),
    organisation_id   BLOB NOT NULL,
    external_id       TEXT NOT NULL UNIQUE,
    phase             TEXT NOT NULL DEFAULT 'none'
        CHECK (phase IN ('none', 'create_sent', 'draft', 'confirm_sent', 'confirmed')),
    asked             TEXT NOT NULL,
    request           TEXT,
    request_sha256    TEXT CHECK (length(request_sha256) = 64),
    provider_order_id INTEGER UNIQUE CHECK (provider_order_id > 0),
    provider_status   TEXT,
    currency          TEXT NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    cost_max_cents    INTEGER NOT NULL CHECK (cost_max_cents > 0),
    cost_cents        INTEGER CHECK (cost_cents >= 0),
    doubts            INTEGER NOT NULL DEFAULT 0 CHECK (doubts >= 0),
    unclear_at        INTEGER,
    attention         TEXT CHECK (attention IN ('mismatch', 'cost_above_cap', 'cancelled', 'failed', 'refused',
        'file_refused', 'unclear', 'missing', 'returned')),
    attention_message TEXT,
    attention_at      INTEGER,
    placed_at         INTEGER,
    shipped_at        INTEGER,
    delivered_at      INTEGER,
    look_at           INTEGER,
    created_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    updated_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    CONSTRAINT print_orders_external_id_is_the_jobs CHECK (external_id = lower(hex(job_id))),
    CONSTRAINT print_orders_frozen_with_digest CHECK ((request IS NULL) = (request_sha256 IS NULL)),
    CONSTRAINT print_orders_intent_is_frozen CHECK (phase = 'none' OR request IS NOT NULL),
    CONSTRAINT print_orders_number_with_draft CHECK (
        (phase IN ('draft', 'confirm_sent', 'confirmed')) = (provider_order_id IS NOT NULL)),
    CONSTRAINT print_orders_within_cap CHECK (phase NOT IN ('confirm_sent', 'confirmed')
        OR (cost_cents IS NOT NULL AND cost_cents <= cost_max_cents)),
    CONSTRAINT print_orders_attention_is_told CHECK (
        (attention IS NULL) = (attention_message IS NULL) AND (attention IS NULL) = (attention_at IS NULL)),
    CONSTRAINT print_orders_placed_is_confirmed CHECK ((phase = 'confirmed') = (placed_at IS NOT NULL)),
    CONSTRAINT print_orders_delivered_is_placed CHECK (delivered_at IS NULL OR placed_at IS NOT NULL)
) STRICT;
CREATE INDEX print_orders_spent ON print_orders (organisation_id, coalesce(placed_at, updated_at))
    WHERE phase IN ('confirm_sent', 'confirmed');
CREATE INDEX print_orders_under_way ON print_orders (organisation_id) WHERE phase NOT IN ('confirm_sent', 'confirmed');
CREATE INDEX print_orders_look ON print_orders (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX print_orders_attention ON print_orders (attention_at) WHERE attention IS NOT NULL;
CREATE TRIGGER print_orders_belongs BEFORE INSERT ON print_orders
WHEN NOT EXISTS (SELECT 1 FROM job_live WHERE id = NEW.job_id) AND NOT EXISTS (SELECT 1 FROM job_past WHERE id = NEW.job_id) BEGIN
    SELECT raise(ABORT, 'print_orders names a job that does not exist');
END;
CREATE TRIGGER print_orders_goes_forward BEFORE UPDATE ON print_orders
WHEN NEW.job_id <> OLD.job_id OR NEW.external_id <> OLD.external_id OR NEW.organisation_id <> OLD.organisation_id
    OR NEW.provider_order_id IS NOT OLD.provider_order_id AND OLD.provider_order_id IS NOT NULL
    OR instr('none create_sent draft confirm_sent confirmed', NEW.phase)
        < instr('none create_sent draft confirm_sent confirmed', OLD.phase)
    OR NOT EXISTS (SELECT 1 FROM retention_pass) AND (NEW.asked <> OLD.asked
        OR OLD.request IS NOT NULL AND (NEW.request IS NOT OLD.request OR NEW.request_sha256 IS NOT OLD.request_sha256))
BEGIN
    SELECT raise(ABORT, 'print_orders_goes_forward: what is recorded of an order is not taken back');
END;
CREATE TRIGGER print_orders_stays BEFORE DELETE ON print_orders WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'print_orders is append-only: only retention may change or remove what it holds');
END;

-- A row that replaces another would delete it without its trigger being asked.
CREATE TRIGGER print_orders_not_replaced BEFORE INSERT ON print_orders
WHEN EXISTS (SELECT 1 FROM print_orders
    WHERE job_id = NEW.job_id OR external_id = NEW.external_id OR provider_order_id = NEW.provider_order_id) BEGIN
    SELECT raise(ABORT, 'print_orders_goes_forward: what is recorded of an order is not taken back');
END;
CREATE TRIGGER print_orders_number_is_its_own BEFORE UPDATE OF provider_order_id ON print_orders
WHEN EXISTS (SELECT 1 FROM print_orders WHERE provider_order_id = NEW.provider_order_id AND job_id <> NEW.job_id) BEGIN
    SELECT raise(ABORT, 'print_orders.provider_order_id is unique: a number belongs to one order');
END;

CREATE TABLE print_order_steps (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id  BLOB NOT NULL REFERENCES print_orders (job_id),
    fence   INTEGER,
    step    TEXT NOT NULL,
    details TEXT,
    at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;
CREATE INDEX print_order_steps_job ON print_order_steps (job_id, id);
CREATE TRIGGER print_order_steps_no_update BEFORE UPDATE ON print_order_steps WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'print_order_steps is append-only: only retention may change or remove what it holds');
END;
CREATE TRIGGER print_order_steps_no_delete BEFORE DELETE ON print_order_steps WHEN NOT EXISTS (SELECT 1 FROM retention_pass) BEGIN
    SELECT raise(ABORT, 'print_order_steps is append-only: only retention may change or remove what it holds');
END;

CREATE TRIGGER print_order_steps_not_replaced BEFORE INSERT ON print_order_steps
WHEN EXISTS (SELECT 1 FROM print_order_steps WHERE id = NEW.id) BEGIN
    SELECT raise(ABORT, 'print_order_steps is append-only: only retention may change or remove what it holds');
END;

CREATE TABLE provider_events (
    digest      TEXT PRIMARY KEY CHECK (length(digest) = 64),
    kind        TEXT NOT NULL,
    external_id TEXT,
    received_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;
CREATE INDEX provider_events_received ON provider_events (received_at);

CREATE TABLE provider_turns (
    name    TEXT PRIMARY KEY,
    full_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER job_live_ordered BEFORE UPDATE OF state ON job_live
WHEN NEW.pipeline = 'print' AND NEW.state = 'ordered' AND NOT EXISTS (SELECT 1 FROM print_orders WHERE job_id = NEW.id AND phase = 'confirmed') BEGIN
    SELECT raise(ABORT, 'job_is_ordered: a print job is ordered and its order is not recorded as such');
END;
CREATE TRIGGER job_live_born_ordered BEFORE INSERT ON job_live
WHEN NEW.pipeline = 'print' AND NEW.state = 'ordered' AND NOT EXISTS (SELECT 1 FROM print_orders WHERE job_id = NEW.id AND phase = 'confirmed') BEGIN
    SELECT raise(ABORT, 'job_is_ordered: a print job is ordered and its order is not recorded as such');
END;
CREATE TRIGGER job_live_stays_ordered BEFORE UPDATE OF state ON job_live WHEN OLD.state = 'ordered' AND NEW.state <> 'ordered' BEGIN
    SELECT raise(ABORT, 'job_stays_ordered: a print job that is ordered cannot be ordered again; reprint its map');
END;
CREATE TRIGGER job_past_fulfilled BEFORE INSERT ON job_past
WHEN NEW.pipeline = 'print' AND NEW.state = 'fulfilled' AND NOT EXISTS (SELECT 1 FROM print_orders WHERE job_id = NEW.id AND delivered_at IS NOT NULL) BEGIN
    SELECT raise(ABORT, 'job_is_ordered: a print job is fulfilled and its delivery is not recorded');
END;
CREATE TRIGGER job_past_turned_fulfilled BEFORE UPDATE OF state ON job_past
WHEN NEW.pipeline = 'print' AND NEW.state = 'fulfilled' AND NOT EXISTS (SELECT 1 FROM print_orders WHERE job_id = NEW.id AND delivered_at IS NOT NULL) BEGIN
    SELECT raise(ABORT, 'job_is_ordered: a print job is fulfilled and its delivery is not recorded');
END;
CREATE TRIGGER job_past_forget_recipient AFTER DELETE ON job_past
WHEN OLD.pipeline = 'print' AND EXISTS (SELECT 1 FROM retention_pass) BEGIN
    UPDATE print_orders SET asked = '{}', request = iif(request IS NULL, NULL, '{}') WHERE job_id = OLD.id;
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
    CASE WHEN e.path IS NULL THEN j.retry_count END AS export_retry_count,
    o.provider_order_id AS printful_order_id,
    (SELECT max(h.at) FROM job_events h WHERE h.job_id = j.id AND h.to_state = 'ordering') AS order_started_at,
    o.placed_at AS order_completed_at,
    CASE WHEN j.state = 'order_failed' THEN j.error_message END AS order_error,
    CASE WHEN e.path IS NOT NULL THEN j.retry_count END AS order_retry_count,
    o.phase AS order_phase,
    o.attention AS needs_attention,
    o.shipped_at,
    o.delivered_at,
    j.created_at,
    j.updated_at
FROM jobs j
LEFT JOIN map_print p ON p.job_id = j.id
LEFT JOIN job_artifact e ON e.job_id = j.id AND e.role = 'export'
LEFT JOIN print_orders o ON o.job_id = j.id
WHERE j.pipeline = 'print';

CREATE VIEW print_job_events AS
SELECT h.seq AS id, j.id AS print_job_id, h.from_state, h.to_state, h.meta AS metadata, h.at AS occurred_at
FROM jobs j JOIN job_events h ON h.job_id = j.id WHERE j.pipeline = 'print';
