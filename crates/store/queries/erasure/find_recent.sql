-- $1 text: platform
-- $2 text: author
SELECT * FROM (
    SELECT post -> 'user' ->> 'id' AS user_id, post -> 'user' ->> 'name' AS user_name,
        post -> 'user' ->> 'url' AS user_url, time, post_key AS id, feed
    FROM (
        SELECT post_key, feed, time, post FROM recent_posts
        UNION SELECT post_key, feed, time, post FROM refused_posts
    ) AS kept
    WHERE split_part(feed, ':', 1) = $1
) AS recent
WHERE EXISTS (
    -- As mutes of authors compare them.
    SELECT FROM unnest(ARRAY[user_id, user_name, user_url]) AS given
    WHERE rtrim(regexp_replace(lower(btrim(given)), '^/?(@|!|u/|r/|c/)?', ''), '/')
        = rtrim(regexp_replace(lower(btrim($2)), '^/?(@|!|u/|r/|c/)?', ''), '/'))
