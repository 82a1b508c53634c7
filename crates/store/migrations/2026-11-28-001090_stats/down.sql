DROP TABLE feed_stats, stats, stats_deltas;
