-- PostgreSQL looks into its view as it is; this file keeps the versions in step.
SELECT 1;
