-- A backfill whose Scans cannot be stored is tried again later and later, and then set aside with the reason,
-- so that it holds up no other. Written by the scanner that tried.
ALTER TABLE backfills
    ADD COLUMN failure_count integer NOT NULL DEFAULT 0,
    ADD COLUMN error text,
    ADD COLUMN next_time timestamptz,
    DROP CONSTRAINT backfills_state_check,
    ADD CONSTRAINT backfills_state_check CHECK (state IN ('WAITING', 'READING', 'DONE', 'FAILED'));
CREATE INDEX backfills_ended_idx ON backfills (update_time) WHERE state IN ('DONE', 'FAILED');
DROP INDEX backfills_done_idx;
COMMENT ON COLUMN backfills.error IS 'why it could not be stored the last time; of a FAILED one, for good';
COMMENT ON COLUMN backfills.next_time IS 'it is not tried again before; NULL while nothing has failed';
