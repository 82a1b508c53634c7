DROP INDEX scan_keys_time_idx;
