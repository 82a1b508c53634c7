-- $1 text: feed
-- $2 timestamptz: oldest time
-- $3 bigint: most posts
-- $4 bigint: most bytes
-- $5 bigint: most bytes of an account
-- $6 bigint: a feed of so many accounts keeps as much as any
WITH owners AS (
    SELECT account_id FROM account_feeds WHERE feed = $1 AND leave_time IS NULL LIMIT $6
), allowance AS (
    SELECT CASE WHEN count(*) = $6 THEN $4 ELSE least($4, max($5 / greatest(1,
        (SELECT count(*) FROM account_feeds AS own WHERE own.account_id = owners.account_id)))) END AS bytes
    FROM owners
), ranked AS (
    -- Posts from before the column `bytes` have at least their stored size.
    SELECT post_key, time, row_number() OVER newest AS rank,
        sum(coalesce(bytes, pg_column_size(post))) OVER newest AS total
    FROM recent_posts WHERE feed = $1
    -- Many posts may have one time.
    WINDOW newest AS (ORDER BY time DESC, post_key ROWS UNBOUNDED PRECEDING)
), gone AS (
    DELETE FROM recent_posts AS kept USING ranked, allowance
    WHERE kept.feed = $1 AND kept.post_key = ranked.post_key
        AND (ranked.time < $2 OR ranked.rank > $3 OR ranked.total > allowance.bytes)
    RETURNING kept.time
)
SELECT greatest($2, max(time) + interval '1 microsecond') AS time FROM gone
