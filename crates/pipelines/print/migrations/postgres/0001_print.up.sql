-- Maps that people keep, maps that are frozen for print, which job prints which, and their orders at a print provider: what
-- was asked for, what is recorded of placing it, and what people should look at.

CREATE TABLE user_maps (
    id              uuid PRIMARY KEY,
    session_id      uuid,
    user_id         uuid,
    organisation_id uuid,
    name            text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Points, lines and polygons as GeoJSON. They go when the map is deleted; the row stays while a frozen map names it.
    data            jsonb,
    -- Counts changes, so that a frozen map says what it was made of, and two people do not overwrite each other.
    version         integer NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    deleted_at      timestamptz,
    CONSTRAINT user_maps_features CHECK (data IS NULL OR (data ->> 'type' = 'FeatureCollection'
        AND jsonb_typeof(data -> 'features') = 'array') IS TRUE),
    CONSTRAINT user_maps_deleted CHECK ((data IS NULL) = (deleted_at IS NOT NULL)),
    CONSTRAINT user_maps_one_owner CHECK (num_nonnulls(session_id, organisation_id) <= 1)
);
CREATE INDEX user_maps_session ON user_maps (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX user_maps_user ON user_maps (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX user_maps_organisation ON user_maps (organisation_id, id) WHERE organisation_id IS NOT NULL;

-- What is printed: a specification in its canonical form, with a copy of the features. `json` and not `jsonb`, because it
-- keeps the text as it is, and the digest is of that text.
CREATE TABLE printable_maps (
    id               uuid PRIMARY KEY,
    user_map_id      uuid REFERENCES user_maps (id),
    user_map_version integer,
    session_id       uuid,
    user_id          uuid,
    organisation_id  uuid,
    data             json NOT NULL,
    sha256           text NOT NULL,
    -- What lists show of it, so that they need not read all of it.
    title            text GENERATED ALWAYS AS (data -> 'title' ->> 'text') STORED,
    page_size        text GENERATED ALWAYS AS (data -> 'page' ->> 'size') STORED,
    page             json GENERATED ALWAYS AS (data -> 'page') STORED,
    created_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT printable_maps_form CHECK ((data ->> 'schema' = '1') IS TRUE),
    CONSTRAINT printable_maps_digest CHECK (sha256 = encode(sha256(convert_to(data::text, 'UTF8')), 'hex')),
    CONSTRAINT printable_maps_made_of CHECK ((user_map_id IS NULL) = (user_map_version IS NULL)),
    CONSTRAINT printable_maps_one_owner CHECK (num_nonnulls(session_id, organisation_id) <= 1)
);
CREATE INDEX printable_maps_session ON printable_maps (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX printable_maps_user ON printable_maps (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX printable_maps_organisation ON printable_maps (organisation_id, id) WHERE organisation_id IS NOT NULL;
CREATE INDEX printable_maps_user_map ON printable_maps (user_map_id) WHERE user_map_id IS NOT NULL;

-- Only who sees it may change, and only by one: when a session's maps are given to a user.
CREATE FUNCTION ode_refuse_to_thaw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF ROW(NEW.id, NEW.user_map_id, NEW.user_map_version, NEW.session_id, NEW.organisation_id, NEW.data::text, NEW.sha256,
            NEW.created_at, coalesce(OLD.user_id, NEW.user_id))
        IS DISTINCT FROM ROW(OLD.id, OLD.user_map_id, OLD.user_map_version, OLD.session_id, OLD.organisation_id,
            OLD.data::text, OLD.sha256, OLD.created_at, NEW.user_id) THEN
        RAISE EXCEPTION 'printable_maps is frozen: make a new map instead of changing one' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER printable_maps_frozen BEFORE UPDATE ON printable_maps FOR EACH ROW EXECUTE FUNCTION ode_refuse_to_thaw();
CREATE TRIGGER printable_maps_kept BEFORE DELETE OR TRUNCATE ON printable_maps
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- Which job prints which map. One map may be printed many times.
CREATE TABLE map_print (
    job_id           uuid PRIMARY KEY,
    printable_map_id uuid NOT NULL REFERENCES printable_maps (id)
);
CREATE INDEX map_print_map ON map_print (printable_map_id, job_id);
CREATE TRIGGER map_print_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON map_print
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();
CREATE CONSTRAINT TRIGGER map_print_belongs AFTER INSERT ON map_print DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();

-- However a print job comes about, the map in its input must be there and be its owner's.
CREATE FUNCTION ode_print_map() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO map_print (job_id, printable_map_id)
    SELECT NEW.id, m.id FROM printable_maps m
    WHERE m.id = CASE WHEN NEW.input ->> 'printable_map_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            THEN (NEW.input ->> 'printable_map_id')::uuid END
        AND (m.organisation_id = NEW.organisation_id OR m.user_id = NEW.user_id OR m.session_id = NEW.session_id
            OR num_nonnulls(m.organisation_id, m.user_id, m.session_id, NEW.organisation_id, NEW.user_id,
                NEW.session_id) = 0)
    -- A job that is tried again has its row already.
    ON CONFLICT (job_id) DO NOTHING;
    IF NOT EXISTS (SELECT 1 FROM map_print WHERE job_id = NEW.id) THEN
        RAISE EXCEPTION 'job_live names the printable map %, which its owner does not have',
            NEW.input ->> 'printable_map_id' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_live_print_map AFTER INSERT ON job_live FOR EACH ROW
    WHEN (NEW.pipeline = 'print' AND NEW.input ? 'printable_map_id') EXECUTE FUNCTION ode_print_map();

CREATE FUNCTION ode_remove_map_print() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM map_print WHERE job_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_remove_map_print AFTER DELETE ON job_past FOR EACH ROW
    WHEN (OLD.pipeline = 'print' AND current_setting('ode.retention', true) = 'on') EXECUTE FUNCTION ode_remove_map_print();

-- One export for each job; and found by its content, since that is its address.
CREATE UNIQUE INDEX job_artifact_one_export ON job_artifact (job_id) WHERE role = 'export';
CREATE INDEX job_artifact_export ON job_artifact (sha256) WHERE role = 'export';

-- Past its export, a job has one. Looked at when the transaction commits that publishes both.
CREATE FUNCTION ode_is_exported() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM job_artifact WHERE job_id = NEW.id AND role = 'export') THEN
        RAISE EXCEPTION 'job_live_exported: print job % is % and has no export', NEW.id, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_live_exported AFTER INSERT OR UPDATE OF state ON job_live DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state IN ('export_complete', 'ordering', 'ordered')) EXECUTE FUNCTION ode_is_exported();

-- What an organisation may spend, in hundredths. Without a row it may order nothing.
CREATE TABLE spend_caps (
    organisation_id uuid PRIMARY KEY,
    currency        text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    order_cents     bigint NOT NULL CHECK (order_cents > 0),
    month_cents     bigint NOT NULL CHECK (month_cents >= order_cents),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

-- One order for each job that asks for one. The job is one row with states of its own; how far placing the order is
-- known to have come stands here, and is written before what it tells of is done.
CREATE TABLE print_orders (
    job_id            uuid PRIMARY KEY,
    organisation_id   uuid NOT NULL,
    external_id       char(32) NOT NULL UNIQUE,
    phase             text NOT NULL DEFAULT 'none'
        CHECK (phase IN ('none', 'create_sent', 'draft', 'confirm_sent', 'confirmed')),
    asked             jsonb NOT NULL,
    request           jsonb,
    request_sha256    text CHECK (length(request_sha256) = 64),
    provider_order_id bigint UNIQUE CHECK (provider_order_id > 0),
    provider_status   text,
    currency          text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    cost_max_cents    bigint NOT NULL CHECK (cost_max_cents > 0),
    cost_cents        bigint CHECK (cost_cents >= 0),
    doubts            integer NOT NULL DEFAULT 0 CHECK (doubts >= 0),
    unclear_at        timestamptz,
    attention         text CHECK (attention IN ('mismatch', 'cost_above_cap', 'cancelled', 'failed', 'refused',
        'file_refused', 'unclear', 'missing', 'returned')),
    attention_message text,
    attention_at      timestamptz,
    placed_at         timestamptz,
    shipped_at        timestamptz,
    delivered_at      timestamptz,
    -- When the provider is asked next how the order stands.
    look_at           timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT print_orders_external_id_is_the_jobs CHECK (external_id = replace(job_id::text, '-', '')),
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
);
CREATE INDEX print_orders_spent ON print_orders (organisation_id, coalesce(placed_at, updated_at))
    WHERE phase IN ('confirm_sent', 'confirmed');
CREATE INDEX print_orders_under_way ON print_orders (organisation_id) WHERE phase NOT IN ('confirm_sent', 'confirmed');
CREATE INDEX print_orders_look ON print_orders (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX print_orders_attention ON print_orders (attention_at) WHERE attention IS NOT NULL;
CREATE CONSTRAINT TRIGGER print_orders_belongs AFTER INSERT ON print_orders DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ode_belongs();

-- What was frozen stays, a number that was given stays, and the record never goes back. A job that retention removes
-- takes the address along and leaves the amounts.
CREATE FUNCTION ode_order_goes_forward() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    phases CONSTANT text[] := ARRAY['none', 'create_sent', 'draft', 'confirm_sent', 'confirmed'];
BEGIN
    IF NEW.job_id <> OLD.job_id OR NEW.external_id <> OLD.external_id OR NEW.organisation_id <> OLD.organisation_id
        OR NEW.provider_order_id IS DISTINCT FROM OLD.provider_order_id AND OLD.provider_order_id IS NOT NULL
        OR array_position(phases, NEW.phase) < array_position(phases, OLD.phase)
        OR coalesce(current_setting('ode.retention', true), '') <> 'on' AND (NEW.asked <> OLD.asked
            OR OLD.request IS NOT NULL AND (NEW.request IS DISTINCT FROM OLD.request
                OR NEW.request_sha256 IS DISTINCT FROM OLD.request_sha256)) THEN
        RAISE EXCEPTION 'print_orders_goes_forward: what is recorded of an order is not taken back'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER print_orders_goes_forward BEFORE UPDATE ON print_orders
    FOR EACH ROW EXECUTE FUNCTION ode_order_goes_forward();
CREATE TRIGGER print_orders_stays BEFORE DELETE OR TRUNCATE ON print_orders
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- Every step of the record, under the fence it was made.
CREATE TABLE print_order_steps (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id  uuid NOT NULL REFERENCES print_orders (job_id),
    fence   integer,
    step    text NOT NULL,
    details jsonb,
    at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX print_order_steps_job ON print_order_steps (job_id, id);
CREATE TRIGGER print_order_steps_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON print_order_steps
    FOR EACH STATEMENT EXECUTE FUNCTION ode_refuse();

-- What the provider told us by itself, each once: it may be told twice, late and in any order.
CREATE TABLE provider_events (
    digest      text PRIMARY KEY CHECK (length(digest) = 64),
    kind        text NOT NULL,
    external_id text,
    received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX provider_events_received ON provider_events (received_at);

-- When the bucket of a provider's rate limit would be full again; shared by all processes.
CREATE TABLE provider_turns (
    name    text PRIMARY KEY,
    full_at timestamptz NOT NULL
);

-- A job is ordered when its order is recorded as confirmed under the provider's number, and fulfilled when delivery is.
CREATE FUNCTION ode_is_ordered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM print_orders WHERE job_id = NEW.id AND phase = 'confirmed'
        AND (NEW.state = 'ordered' OR delivered_at IS NOT NULL)) THEN
        RAISE EXCEPTION 'job_is_ordered: print job % is % and its order is not recorded as such', NEW.id, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_live_ordered AFTER INSERT OR UPDATE OF state ON job_live DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'ordered') EXECUTE FUNCTION ode_is_ordered();
CREATE CONSTRAINT TRIGGER job_past_fulfilled AFTER INSERT OR UPDATE OF state ON job_past DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'fulfilled') EXECUTE FUNCTION ode_is_ordered();

-- An ordered job leaves that state by its delivery alone, which moves its row.
CREATE FUNCTION ode_stays_ordered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job_stays_ordered: print job % is ordered and cannot be ordered again; reprint its map', OLD.id
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER job_live_stays_ordered BEFORE UPDATE OF state ON job_live
    FOR EACH ROW WHEN (OLD.state = 'ordered' AND NEW.state <> 'ordered') EXECUTE FUNCTION ode_stays_ordered();

CREATE FUNCTION ode_forget_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE print_orders SET asked = '{}', request = CASE WHEN request IS NOT NULL THEN '{}'::jsonb END
    WHERE job_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER job_past_forget_recipient AFTER DELETE ON job_past FOR EACH ROW
    WHEN (OLD.pipeline = 'print' AND current_setting('ode.retention', true) = 'on')
    EXECUTE FUNCTION ode_forget_recipient();

-- The names under which earlier systems know these relations.
CREATE VIEW print_jobs WITH (security_invoker) AS
SELECT
    j.id,
    p.printable_map_id,
    j.state,
    e.path AS export_file_path,
    (SELECT max(h.at) FROM ode_history(j.id) h WHERE h.to_state = 'exporting') AS export_started_at,
    e.created_at AS export_completed_at,
    CASE WHEN j.state = 'export_failed' THEN j.error_message END AS export_error,
    CASE WHEN e.path IS NULL THEN j.retry_count END AS export_retry_count,
    o.provider_order_id AS printful_order_id,
    (SELECT max(h.at) FROM ode_history(j.id) h WHERE h.to_state = 'ordering') AS order_started_at,
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

CREATE VIEW print_job_events WITH (security_invoker) AS
SELECT h.seq AS id, j.id AS print_job_id, h.from_state, h.to_state, h.meta AS metadata, h.at AS occurred_at
FROM jobs j CROSS JOIN LATERAL ode_history(j.id) h WHERE j.pipeline = 'print';

ALTER TABLE user_maps ENABLE ROW LEVEL SECURITY;
ALTER TABLE printable_maps ENABLE ROW LEVEL SECURITY;
ALTER TABLE map_print ENABLE ROW LEVEL SECURITY;
ALTER TABLE print_orders ENABLE ROW LEVEL SECURITY;

CREATE POLICY see_own ON user_maps FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
CREATE POLICY create_own ON user_maps FOR INSERT TO ode_api
    WITH CHECK (organisation_id = ode_organisation() AND user_id IS NULL);
CREATE POLICY change_own ON user_maps FOR UPDATE TO ode_api USING (organisation_id = ode_organisation())
    WITH CHECK (organisation_id = ode_organisation() AND user_id IS NULL);
CREATE POLICY see_own ON printable_maps FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
CREATE POLICY create_own ON printable_maps FOR INSERT TO ode_api WITH CHECK (organisation_id = ode_organisation()
    AND user_id IS NULL AND (user_map_id IS NULL OR EXISTS (SELECT 1 FROM user_maps u WHERE u.id = user_map_id)));
CREATE POLICY see_own ON map_print FOR SELECT TO ode_api USING (ode_is_own(job_id));
CREATE POLICY see_own ON print_orders FOR SELECT TO ode_api USING (organisation_id = ode_organisation());

GRANT SELECT, INSERT, UPDATE ON user_maps TO ode_api;
GRANT SELECT, INSERT ON printable_maps TO ode_api;
GRANT SELECT ON map_print, print_orders TO ode_api;

DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class
        WHERE oid = 'print_jobs'::regclass) THEN
        GRANT SELECT ON print_jobs, print_job_events TO ode_api;
    END IF;
END $$;
