DROP VIEW script_jobs_metrics, script_jobs_failed_summary, script_jobs_queue_status, script_jobs;
DROP INDEX job_live_script_reference, job_past_script_reference, job_live_script_restaurant, job_past_script_restaurant,
    job_live_script_creator, job_past_script_creator, job_past_script_type, job_past_script_created, job_past_script_updated;
DROP FUNCTION ode_restaurant(jsonb);
DROP TRIGGER job_past_remove_script ON job_past;
DROP TRIGGER job_past_script_ended ON job_past;
DROP TRIGGER job_live_script_defaults ON job_live;
DROP FUNCTION ode_remove_script(), ode_script_ended(), ode_script_defaults();
DROP TABLE script_turn, script_need, script_order, script_run, script_checkpoint, script_secret, seal_key, script_type;
