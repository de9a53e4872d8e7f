DROP VIEW print_job_events, print_jobs;
DROP TRIGGER job_live_ordered ON job_live;
DROP TRIGGER job_live_stays_ordered ON job_live;
DROP TRIGGER job_live_exported ON job_live;
DROP TRIGGER job_live_print_map ON job_live;
DROP TRIGGER job_past_fulfilled ON job_past;
DROP TRIGGER job_past_forget_recipient ON job_past;
DROP TRIGGER job_past_remove_map_print ON job_past;
DROP INDEX job_artifact_one_export, job_artifact_export;
DROP TABLE print_order_steps, print_orders, spend_caps, provider_events, provider_turns, map_print, printable_maps, user_maps;
DROP FUNCTION ode_is_ordered(), ode_order_goes_forward(), ode_forget_recipient(), ode_stays_ordered(), ode_is_exported(),
    ode_remove_map_print(), ode_print_map(), ode_refuse_to_thaw();
