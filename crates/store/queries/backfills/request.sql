-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 boolean: whether Scans are delivered
-- $4 timestamptz: start
-- $5 text: trace context
-- $6 double precision: seconds that count from before the account watched a feed
WITH asked AS (
    INSERT INTO backfills AS b (namespace_id, manager_id, feed, notify, since, traceparent)
    SELECT $1, $2, feed, $3, $4, $5 FROM feed_watchers WHERE namespace_id = $1 AND manager_id = $2
    ORDER BY feed
    ON CONFLICT (namespace_id, manager_id, feed, notify) DO UPDATE
        SET since = least($4, CASE WHEN b.state IN ('WAITING', 'READING') THEN b.since END,
                CASE WHEN b.state <> 'DONE' THEN b.catch_up_since END),
            -- A failed one owes refused posts too.
            catch_up_since = CASE WHEN b.state <> 'DONE' THEN b.catch_up_since END,
            traceparent = $5, state = 'WAITING', look_back_id = NULL, before = NULL, reach_time = NULL,
            failure_count = 0, error = NULL, next_time = NULL,
            create_time = clock_timestamp(), update_time = clock_timestamp()
    RETURNING feed
)
SELECT a.feed, clock_timestamp() AS now, f.posts_per_day,
    CASE WHEN own.feed IS NULL OR coalesce(f.read_time, f.last_poll_time) >= own.watch_time THEN
        greatest(f.kept_since, clock_timestamp() - interval '72 hours',
            own.watch_time - $6 * interval '1 second') END AS kept_since
FROM asked AS a JOIN feeds AS f ON f.name = a.feed JOIN namespaces AS n ON n.id = $1
LEFT JOIN account_feeds AS own ON own.account_id = n.account_id AND own.feed = a.feed ORDER BY a.feed
