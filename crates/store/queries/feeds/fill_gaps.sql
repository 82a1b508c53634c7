-- $1 text: feed
-- $2 bigint[]: ids
UPDATE feed_gaps SET fill_time = now() WHERE feed = $1 AND id = ANY ($2)
