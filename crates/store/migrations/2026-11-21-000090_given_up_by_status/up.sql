-- What did not get through, filtered by the status that it got: told by the index, without a look at each
-- delivery. In the place of the index without the status, and for the same queries.
CREATE INDEX deliveries_given_up_status_idx ON deliveries
    (namespace_id, connection_id, state COLLATE "C", create_time, id, (last_status_code::float8))
    WHERE state COLLATE "C" IN ('EXHAUSTED', 'CANCELLED');
DROP INDEX deliveries_given_up_idx;
