CREATE OR REPLACE TRIGGER connections_renew_lane AFTER UPDATE OF state, url ON connections
    FOR EACH ROW WHEN (NEW.state = 'ACTIVE' AND (OLD.state <> 'ACTIVE' OR NEW.url <> OLD.url))
    EXECUTE FUNCTION renew_connection_lane();
