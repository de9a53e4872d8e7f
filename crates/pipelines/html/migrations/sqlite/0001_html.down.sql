DROP VIEW job_assets;
DROP VIEW html_jobs;
