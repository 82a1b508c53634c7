-- The size of each recent post, by which the scanner bounds the posts that it keeps of a feed.
ALTER TABLE recent_posts ADD COLUMN bytes integer;
COMMENT ON COLUMN recent_posts.bytes IS 'length of post as JSON; NULL for posts from before the column';
COMMENT ON COLUMN feeds.next_poll_time IS 'of a feed that is not watched, about when its last watcher left';
