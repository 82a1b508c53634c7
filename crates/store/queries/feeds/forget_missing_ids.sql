-- $1 text: feed
-- $2 bigint[]: ids
DELETE FROM feed_missing_ids WHERE feed = $1 AND id = ANY ($2)
