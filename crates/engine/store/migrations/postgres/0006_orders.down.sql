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
    j.retry_count AS export_retry_count,
    j.created_at,
    j.updated_at
FROM jobs j
LEFT JOIN map_print p ON p.job_id = j.id
LEFT JOIN job_artifact e ON e.job_id = j.id AND e.role = 'export'
WHERE j.pipeline = 'print';
DO $$ BEGIN
    IF (SELECT coalesce('security_invoker=true' = ANY (reloptions), FALSE) FROM pg_class
        WHERE oid = 'print_jobs'::regclass) THEN
        GRANT SELECT ON print_jobs TO ode_api;
    END IF;
END $$;
DROP TRIGGER job_live_ordered ON job_live;
DROP TRIGGER IF EXISTS job_live_stays_ordered ON job_live;
DROP TRIGGER job_past_fulfilled ON job_past;
DROP TRIGGER job_past_forget_recipient ON job_past;
DROP TABLE print_order_steps, print_orders, spend_caps, provider_events, provider_turns;
DROP FUNCTION ode_is_ordered(), ode_order_goes_forward(), ode_forget_recipient();
DROP FUNCTION IF EXISTS ode_stays_ordered();
