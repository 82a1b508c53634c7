-- $1 text: platform
-- $2 text: author
-- $3 timestamptz: receive_time from
-- $4 timestamptz: receive_time before
SELECT user_id, user_name, user_url, receive_time AS time, id, feed FROM posts
WHERE receive_time >= $3 AND receive_time < $4 AND split_part(feed, ':', 1) = $1 AND erase_time IS NULL AND EXISTS (
    -- As mutes of authors compare them.
    SELECT FROM unnest(ARRAY[user_id, user_name, user_url]) AS given
    WHERE rtrim(regexp_replace(lower(btrim(given)), '^/?(@|!|u/|r/|c/)?', ''), '/')
        = rtrim(regexp_replace(lower(btrim($2)), '^/?(@|!|u/|r/|c/)?', ''), '/'))
