-- $1 text[]: feeds
-- $2 double precision: seconds after which an id is unexplained
-- $3 integer: most ids that are named for one day
-- $4 uuid: namespace
SELECT missing.feed, to_char(miss_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
    count(*) FILTER (WHERE NOT is_old) AS not_visible, count(*) FILTER (WHERE is_old) AS unexplained,
    coalesce((array_agg(id ORDER BY id) FILTER (WHERE is_old))[:$3], ARRAY[]::bigint[]) AS ids
FROM feed_missing_ids AS missing
LEFT JOIN account_feeds AS a ON a.feed = missing.feed
    AND a.account_id = (SELECT account_id FROM namespaces WHERE id = $4)
CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched
CROSS JOIN LATERAL (SELECT miss_time < clock_timestamp() - $2 * interval '1 second' AS is_old) AS aged
WHERE missing.feed = ANY ($1) AND miss_time >= since GROUP BY 1, 2
