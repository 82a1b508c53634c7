DROP INDEX managers_failed_idx;
