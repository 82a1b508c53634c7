DROP TABLE replays;
DROP INDEX deliveries_given_up_idx;
DROP INDEX deliveries_urgent_idx;
ALTER TABLE deliveries
    DROP COLUMN reopen_asked,
    DROP COLUMN reopen_time,
    DROP COLUMN schedule_base,
    DROP COLUMN urgent;
