-- $1 bigint: default quota of Scans a day
-- $2 text: feed
-- $3 boolean: whether Scans are delivered
-- $4 uuid: account
-- $5 bigint: most backfills
SELECT b.namespace_id, b.manager_id, b.since, b.catch_up_since, b.create_time, b.traceparent,
    (SELECT watch_time FROM account_feeds AS own WHERE own.account_id = a.id AND own.feed = b.feed) AS watch_time
FROM backfills AS b JOIN namespaces AS n ON n.id = b.namespace_id JOIN accounts AS a ON a.id = n.account_id
LEFT JOIN account_days AS d ON d.account_id = a.id AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
WHERE b.state = 'WAITING' AND (b.next_time IS NULL OR b.next_time <= clock_timestamp())
    AND (coalesce(d.scans, 0) < coalesce(a.quota_scans_per_day, $1))
    AND b.feed = $2 AND b.notify = $3 AND a.id = $4
ORDER BY b.create_time, b.manager_id LIMIT $5
