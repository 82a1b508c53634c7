DROP INDEX managers_crashed_idx;
