DROP INDEX backfills_ended_idx;
CREATE INDEX backfills_done_idx ON backfills (update_time) WHERE state = 'DONE';
UPDATE backfills SET state = 'DONE', look_back_id = NULL WHERE state = 'FAILED';
ALTER TABLE backfills
    DROP CONSTRAINT backfills_state_check,
    ADD CONSTRAINT backfills_state_check CHECK (state IN ('WAITING', 'READING', 'DONE')),
    DROP COLUMN failure_count,
    DROP COLUMN error,
    DROP COLUMN next_time;
