DROP INDEX job_key_content;
DROP INDEX owner_name;
DROP TABLE web_key;
