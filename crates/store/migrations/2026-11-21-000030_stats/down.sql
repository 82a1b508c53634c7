DROP TABLE feed_stats;
DROP TABLE stats;
DROP TABLE stats_deltas;
