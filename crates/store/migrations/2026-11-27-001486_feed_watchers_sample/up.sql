-- Serves the scanner's look for due feeds: a sample of the feeds of a platform that a Namespace watches, by their hash.
CREATE INDEX CONCURRENTLY IF NOT EXISTS feed_watchers_sample_idx
    ON feed_watchers (split_part(feed, ':', 1), namespace_id, hashtextextended(feed, 0), feed);
