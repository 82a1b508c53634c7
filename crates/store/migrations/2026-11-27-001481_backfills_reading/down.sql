DROP INDEX backfills_reading_idx;
