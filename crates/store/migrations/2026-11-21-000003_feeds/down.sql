DROP TABLE feed_watchers, feeds, replicas;
