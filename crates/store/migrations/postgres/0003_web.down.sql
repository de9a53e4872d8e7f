DROP INDEX owner_name;
DROP TABLE web_key;
