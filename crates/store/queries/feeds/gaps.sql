-- $1 text[]: feeds
-- $2 uuid: namespace
SELECT gap.feed, to_char(find_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
    -- An earlier start would show that others read the feed then. It is unknown if the account did not watch before the end.
    CASE WHEN start_time >= since OR start_time IS NOT NULL AND since < end_time
        THEN greatest(start_time, since) END AS start_time,
    end_time, reason, fill_time IS NOT NULL AS is_filled
FROM feed_gaps AS gap
LEFT JOIN account_feeds AS a ON a.feed = gap.feed
    AND a.account_id = (SELECT account_id FROM namespaces WHERE id = $2)
CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched
WHERE gap.feed = ANY ($1) AND find_time >= since ORDER BY id DESC
