DROP TRIGGER job_past_announce ON job_past;
DROP FUNCTION ode_announce();
DROP TABLE webhook_delivery;
DROP TABLE webhook_secret;
DROP TABLE webhook_endpoint;
DROP VIEW job_logs;
DROP VIEW job_assets;
DROP VIEW html_jobs;
