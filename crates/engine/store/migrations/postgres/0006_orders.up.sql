-- Orders at a print provider: what was asked for, what is recorded of placing it, and what people should look at.

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

DROP VIEW print_jobs;
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

ALTER TABLE print_orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY see_own ON print_orders FOR SELECT TO ode_api USING (organisation_id = ode_organisation());
GRANT SELECT ON print_orders TO ode_api;
DO $$ BEGIN
    -- As for the other views: granted only where they show their reader's rows.
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class
        WHERE oid = 'print_jobs'::regclass) THEN
        GRANT SELECT ON print_jobs TO ode_api;
    END IF;
END $$;
