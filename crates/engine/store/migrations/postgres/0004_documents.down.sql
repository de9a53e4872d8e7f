DROP VIEW documents;
DROP INDEX job_past_measured;
ALTER TABLE worker DROP COLUMN about;
DROP TRIGGER job_past_remove_document ON job_past;
DROP FUNCTION ode_remove_document();
DROP TABLE training_samples, revisions, checks, job_download, chore, blob_trash, retention_policy;
