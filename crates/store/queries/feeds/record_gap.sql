-- $1 text: feed
-- $2 timestamptz: start_time, or NULL if it is unknown
-- $3 timestamptz: end_time
-- $4 text: reason
-- $5 bigint: most gaps of a feed
WITH forgotten AS (
    DELETE FROM feed_gaps WHERE feed = $1 AND id <= (
        SELECT id FROM feed_gaps WHERE feed = $1 ORDER BY id DESC OFFSET $5 - 1 LIMIT 1)
), recorded AS (
    INSERT INTO feed_gaps (feed, find_time, start_time, end_time, reason)
    VALUES ($1, now(), $2, $3, $4)
)
-- Without the new one, which the statement does not see.
SELECT EXISTS (SELECT FROM feed_gaps WHERE feed = $1 AND find_time > now() - interval '1 hour') AS is_repeated
