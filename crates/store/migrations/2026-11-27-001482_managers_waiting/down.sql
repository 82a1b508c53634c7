DROP INDEX managers_waiting_idx;
