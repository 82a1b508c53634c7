-- $1 timestamptz: receive_time
-- $2 text: feed
-- $3 uuid[]: ids
-- $4 uuid[]: post_key
-- $5 text[]: type
-- $6 timestamptz[]: time
-- $7 text[]: post_id
-- $8 text[]: title
-- $9 text[]: text
-- $10 text[]: url
-- $11 text[]: subforum_id
-- $12 text[]: subforum_name
-- $13 text[]: subforum_url
-- $14 text[]: user_id
-- $15 text[]: user_name
-- $16 text[]: user_url
INSERT INTO posts (receive_time, feed, id, post_key, type, time, post_id, title, text, url,
    subforum_id, subforum_name, subforum_url, user_id, user_name, user_url)
SELECT $1, $2, * FROM unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
