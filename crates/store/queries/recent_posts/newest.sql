-- $1 text[]: feeds
-- $2 bigint: most posts
-- $3 double precision: longest age in seconds
-- $4 timestamptz: time from, or null
-- $5 timestamptz: time before, or null
WITH of_each AS (
    SELECT DISTINCT ON (kept.post_key) kept.* FROM unnest($1) AS watched (name) CROSS JOIN LATERAL (
        SELECT feed, time, post_key FROM recent_posts
        WHERE feed = watched.name AND time > clock_timestamp() - $3 * interval '1 second'
            AND time >= coalesce($4, 'epoch') AND time < coalesce($5, 'infinity')
        ORDER BY time DESC LIMIT $2
    ) AS kept ORDER BY kept.post_key, kept.time DESC
), newest AS (SELECT * FROM of_each ORDER BY time DESC LIMIT $2)
SELECT feed, post FROM newest JOIN recent_posts USING (post_key, feed) ORDER BY newest.time DESC
