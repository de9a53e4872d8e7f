-- What follows from the machines of the pipelines, beside the rules in the tables themselves: made with the engine's tables, and
-- again whenever a machine or this file has changed. Words in braces are the machines'.

{jobs_view}

DROP TRIGGER IF EXISTS job_past_announce;
-- Looked at closely only where somebody may be told, which is rare.
CREATE TRIGGER job_past_announce AFTER INSERT ON job_past WHEN NEW.pipeline IN ({notified})
    AND ({own_webhook NEW.} IS NOT NULL OR EXISTS (SELECT 1 FROM webhook_endpoint
        WHERE gone_at IS NULL
            AND owner = coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16)))) BEGIN
    INSERT INTO webhook_delivery (id, owner, job_id, external_id, state, error_code, url)
    SELECT randomblob(16), coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16)), NEW.id,
        NEW.external_id, NEW.state, NEW.error_code, told.url
    FROM (SELECT url FROM webhook_endpoint
            WHERE gone_at IS NULL AND owner = coalesce(NEW.organisation_id, NEW.user_id, NEW.session_id, zeroblob(16))
        UNION SELECT {own_webhook NEW.}) AS told
    WHERE told.url IS NOT NULL;
END;
