DROP VIEW print_jobs;
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
DROP TRIGGER job_live_ordered;
DROP TRIGGER IF EXISTS job_live_stays_ordered;
DROP TRIGGER job_live_born_ordered;
DROP TRIGGER job_past_fulfilled;
DROP TRIGGER job_past_turned_fulfilled;
DROP TRIGGER job_past_forget_recipient;
DROP TRIGGER print_orders_stays;
DROP TRIGGER print_order_steps_no_delete;
DROP TABLE print_order_steps;
DROP TABLE print_orders;
DROP TABLE spend_caps;
DROP TABLE provider_events;
DROP TABLE provider_turns;
