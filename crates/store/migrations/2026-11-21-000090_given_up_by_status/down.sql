CREATE INDEX deliveries_given_up_idx ON deliveries (namespace_id, connection_id, state COLLATE "C", create_time, id)
    WHERE state COLLATE "C" IN ('EXHAUSTED', 'CANCELLED');
DROP INDEX deliveries_given_up_status_idx;
