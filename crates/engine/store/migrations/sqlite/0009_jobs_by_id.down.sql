-- The view serves the version before as it is; this file keeps the versions in step.
SELECT 1;
