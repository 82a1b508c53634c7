CREATE INDEX deliveries_due_idx ON deliveries (next_attempt_time) WHERE state IN ('PENDING', 'RETRYING');
DROP TRIGGER connections_renew_lane ON connections;
DROP TRIGGER connections_make_lane ON connections;
DROP FUNCTION renew_connection_lane();
DROP FUNCTION make_connection_lane();
DROP TABLE connection_lanes;
