DROP VIEW job_events, jobs;
DROP TABLE worker, job_key, job_log, job_artifact, job_journal, job_live, job, api_key, owner;
DROP FUNCTION ode_touch(), ode_refuse(), ode_phase(text), ode_reference(uuid), ode_new_id(), ode_entry(bigint), ode_seq(bytea, integer);
