DROP VIEW job_events, jobs;
DROP TABLE worker, job_key, job_log, job_artifact, job_journal, job_live, job_past, api_key, owner;
DROP FUNCTION ode_name(), ode_belongs(), ode_remove(), ode_touch(), ode_refuse(), ode_refuse_loss(), ode_refuse_leaving(), ode_refuse_twice(), ode_phase(text), ode_reference(uuid), ode_new_id(), ode_entry(bigint), ode_seq(bytea, integer);
DROP DOMAIN ode_live_rules, ode_past_rules, ode_kind, ode_external_id, ode_priority, ode_timeout_ms, ode_count, ode_number, ode_percent;
DROP TYPE ode_live_facts, ode_past_facts, ode_lane;
