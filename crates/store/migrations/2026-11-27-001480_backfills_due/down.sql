DROP INDEX backfills_due_idx;
