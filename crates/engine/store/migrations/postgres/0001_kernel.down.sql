DROP FUNCTION ode_enqueue(text, text, jsonb, uuid, text, integer, timestamptz, jsonb, jsonb, integer, uuid, bigint);
DROP FUNCTION ode_cancel(uuid), ode_history(uuid), ode_tell(text, text, text, uuid, bigint), ode_new_seq();
DROP POLICY see_own ON job_artifact;
DROP POLICY see_own ON job_log;
DROP POLICY see_own ON job_download;
DROP POLICY see_own ON checks;
DROP FUNCTION ode_is_own(uuid), ode_is_guest();
DROP VIEW job_logs, job_events, jobs;
DROP TABLE webhook_delivery, webhook_secret, webhook_endpoint, checks, job_download, chore, blob_trash, retention_policy, web_key,
    worker, job_key, job_log, job_artifact, job_journal, job_live, job_past, api_key, owner, ode_machines;
DROP FUNCTION ode_organisation(), ode_person(), ode_announce(), ode_name(), ode_belongs(), ode_remove(), ode_touch(),
    ode_refuse(), ode_refuse_loss(), ode_refuse_leaving(), ode_refuse_twice(), ode_phase(text), ode_reference(uuid),
    ode_new_id(), ode_entry(bigint), ode_seq(bytea, integer);
DROP DOMAIN ode_live_rules, ode_past_rules, ode_kind, ode_external_id, ode_priority, ode_timeout_ms, ode_count, ode_number,
    ode_percent;
DROP TYPE ode_live_facts, ode_past_facts, ode_lane;
-- The role is the cluster's, not this database's: it goes when no other database grants it anything.
DO $$ BEGIN
    DROP ROLE ode_api;
EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege OR undefined_object THEN NULL;
END $$;
