DROP INDEX post_keys_time_idx;
