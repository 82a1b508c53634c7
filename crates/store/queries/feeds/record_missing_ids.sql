-- $1 text: feed
-- $2 bigint[]: ids
INSERT INTO feed_missing_ids (feed, id, miss_time) SELECT $1, id, now() FROM unnest($2) AS id
ON CONFLICT DO NOTHING
