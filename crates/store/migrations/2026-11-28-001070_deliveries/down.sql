DROP TRIGGER connections_renew_lane ON connections;
DROP TRIGGER connections_make_lane ON connections;
DROP FUNCTION renew_connection_lane();
DROP FUNCTION make_connection_lane();
DROP TABLE connection_tests, replays, connection_lanes, delivery_attempts, deliveries;
