-- $1 text: feed
-- $2 timestamptz[]: hours
-- $3 bytea[]: ids of each
-- $4 integer: most bytes of an hour
INSERT INTO feed_post_ids AS noted (feed, hour, ids) SELECT $1, * FROM unnest($2, $3)
ON CONFLICT (feed, hour) DO UPDATE SET ids = noted.ids || excluded.ids
    WHERE octet_length(noted.ids) < $4
