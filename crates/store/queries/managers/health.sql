-- $1 uuid: namespace
-- $2 uuid[]: managers
-- $3 integer: failures in a row of a failing feed
-- $4 bigint: most Scans to look at
-- $5 text[]: feeds that count as watched by each Manager, too
SELECT m.id,
    coalesce(feeds.failing, false) AS feeds_failing,
    coalesce(clock.quota_suppressed > 0
        AND clock.quota_day = (clock_timestamp() AT TIME ZONE 'UTC')::date, false) AS flooded,
    clock.refused_since IS NOT NULL OR EXISTS (SELECT FROM backfills AS b
        WHERE b.namespace_id = m.namespace_id AND b.manager_id = m.id AND b.catch_up_since IS NOT NULL
            AND b.state IN ('WAITING', 'READING')) AS paused,
    EXISTS (SELECT FROM backfills AS b
        WHERE b.namespace_id = m.namespace_id AND b.manager_id = m.id AND b.state = 'FAILED'
            AND b.feed = ANY (watched.feeds)
            AND NOT EXISTS (SELECT FROM backfills AS later
                WHERE later.namespace_id = b.namespace_id AND later.manager_id = b.manager_id
                    AND later.feed = b.feed AND later.state = 'DONE' AND later.update_time > b.update_time)
    ) AS backfill_failed,
    m.apply_time < days.begin AND NOT EXISTS (SELECT FROM feed_stats AS stats
        WHERE stats.feed = ANY (watched.feeds) AND stats.interval_seconds = 86400 AND stats.time >= days.begin
            AND stats.posts > 0) AS no_posts,
    feedback.judged, feedback.refused
FROM managers AS m
CROSS JOIN (SELECT date_trunc('day', clock_timestamp(), 'UTC') - interval '1 day' AS begin) AS days
LEFT JOIN scan_clocks AS clock ON clock.namespace_id = m.namespace_id AND clock.manager_id = m.id
-- `OFFSET 0` makes the planner read the watched feeds once for each Manager, and not wherever they are used.
CROSS JOIN LATERAL (SELECT ARRAY(SELECT watcher.feed FROM feed_watchers AS watcher
    WHERE watcher.namespace_id = m.namespace_id AND watcher.manager_id = m.id) || $5 AS feeds OFFSET 0) AS watched
CROSS JOIN LATERAL (SELECT bool_and(feed.failure_count >= $3) AS failing
    FROM feeds AS feed WHERE feed.name = ANY (watched.feeds)) AS feeds
CROSS JOIN LATERAL (SELECT count(*) AS judged, count(*) FILTER (WHERE NOT value) AS refused
    FROM (SELECT value, update_time > create_time AS judged FROM scans AS scan
        WHERE scan.namespace_id = m.namespace_id AND scan.manager_id = m.id
        ORDER BY scan.create_time DESC LIMIT $4) AS lately WHERE judged) AS feedback
WHERE m.namespace_id = $1 AND m.id = ANY ($2)
