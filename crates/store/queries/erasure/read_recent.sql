-- $1 text: platform
-- $2 uuid: post_key of the last post read
-- $3 bigint: most posts
-- Keys are hashes, so new posts are spread over their order. A post that is inserted behind the current position is
-- young enough for the next walk.
SELECT split_part(feed, ':', 1) = $1 AS own, coalesce(post ->> 'id', '') AS post_id, time, post_key AS id
FROM (
    (SELECT post_key, feed, time, post FROM recent_posts
     WHERE post_key > $2 ORDER BY post_key LIMIT $3)
    UNION ALL
    (SELECT post_key, feed, time, post FROM refused_posts
     WHERE post_key > $2 ORDER BY post_key LIMIT $3)
) AS kept
ORDER BY post_key LIMIT $3
