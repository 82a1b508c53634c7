DROP INDEX feed_watchers_sample_idx;
