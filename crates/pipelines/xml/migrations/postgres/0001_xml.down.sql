DROP VIEW documents;
DROP INDEX job_past_measured;
DROP TRIGGER job_past_remove_document ON job_past;
DROP FUNCTION ode_remove_document();
DROP TABLE training_samples, revisions;
