-- $1 text: feeds after this name
-- $2 bigint: most feeds
-- $3 double precision: longest age in seconds
-- $4 bigint: most bytes
-- $5 bigint: most bytes of an account
-- $6 bigint: a feed of so many accounts keeps as much as any
-- $7 bigint: most posts
WITH page AS MATERIALIZED (
    SELECT name, clock_timestamp() - $3 * interval '1 second' AS oldest FROM feeds WHERE name > $1 ORDER BY name LIMIT $2
), old AS (
    DELETE FROM recent_posts USING page WHERE feed = page.name AND time < page.oldest
), owners AS MATERIALIZED (
    -- The posts of a feed that no account watches count for those that have left it.
    SELECT page.name AS feed, oldest, own.account_id FROM page CROSS JOIN LATERAL (
        SELECT account_id FROM account_feeds WHERE feed = page.name AND leave_time IS NULL
        UNION ALL SELECT account_id FROM account_feeds WHERE feed = page.name AND leave_time IS NOT NULL
            AND NOT EXISTS (SELECT FROM account_feeds WHERE feed = page.name AND leave_time IS NULL)
        LIMIT $6
    ) AS own
), accounts AS MATERIALIZED (
    SELECT account_id, $5 / count(*) AS bytes FROM account_feeds
    WHERE account_id IN (SELECT account_id FROM owners) GROUP BY account_id
), allowance AS MATERIALIZED (
    SELECT feed, oldest, max(accounts.bytes) AS bytes FROM owners JOIN accounts USING (account_id)
    GROUP BY feed, oldest HAVING count(*) < $6 AND max(accounts.bytes) < $4
), ranked AS MATERIALIZED (
    SELECT feed, post_key, time, allowance.bytes AS allowed,
        -- Posts from before the column `bytes` have at least their stored size.
        sum(coalesce(kept.bytes, pg_column_size(post))) OVER (PARTITION BY feed ORDER BY time DESC, post_key
            ROWS UNBOUNDED PRECEDING) AS total
    FROM recent_posts AS kept JOIN allowance USING (feed) WHERE time >= oldest
), locked AS MATERIALIZED (
    -- A feed whose poll is being stored is left to the next time.
    SELECT name FROM feeds WHERE name IN (SELECT feed FROM ranked WHERE total > allowed)
    ORDER BY name FOR NO KEY UPDATE SKIP LOCKED
), excess AS MATERIALIZED (
    -- Few at a time, because polls wait for the locks. Of a feed the oldest, so that `kept_since` holds.
    SELECT feed, post_key FROM ranked JOIN locked ON locked.name = feed WHERE total > allowed
    ORDER BY feed, time, post_key DESC LIMIT $7
), gone AS (
    DELETE FROM recent_posts AS kept USING excess WHERE kept.feed = excess.feed AND kept.post_key = excess.post_key
    RETURNING kept.feed, kept.time
), moved AS (
    UPDATE feeds SET kept_since = cut.time
    FROM (SELECT feed, max(time) + interval '1 microsecond' AS time FROM gone GROUP BY feed) AS cut
    WHERE name = cut.feed AND kept_since < cut.time
)
SELECT max(name) AS last FROM page
