-- Row-level security, roles and functions are PostgreSQL's; this file keeps the versions in step.
SELECT 1;
