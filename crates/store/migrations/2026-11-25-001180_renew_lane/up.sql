-- Addresses are stored in url_sealed, so a new one changes that column. A key rotation changes it too, but it keeps
-- update_time: the address is the same, and its circuit breaker must stay open.
CREATE OR REPLACE TRIGGER connections_renew_lane AFTER UPDATE OF state, url, url_sealed ON connections
    FOR EACH ROW WHEN (NEW.state = 'ACTIVE' AND (OLD.state <> 'ACTIVE' OR (
        (NEW.url, NEW.url_sealed) IS DISTINCT FROM (OLD.url, OLD.url_sealed)
        AND NEW.update_time <> OLD.update_time)))
    EXECUTE FUNCTION renew_connection_lane();
