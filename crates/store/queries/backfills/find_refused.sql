-- $1 bigint: default quota of Scans a day
-- $2 bigint: most Managers
SELECT clock.namespace_id, clock.manager_id, clock.refused_since, clock.refused_time
FROM scan_clocks AS clock JOIN namespaces AS n ON n.id = clock.namespace_id
JOIN accounts AS a ON a.id = n.account_id
LEFT JOIN account_days AS d ON d.account_id = a.id AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
WHERE clock.refused_since IS NOT NULL AND (coalesce(d.scans, 0) < coalesce(a.quota_scans_per_day, $1))
    AND EXISTS (SELECT FROM feed_watchers AS w
        WHERE w.namespace_id = clock.namespace_id AND w.manager_id = clock.manager_id)
ORDER BY clock.namespace_id, clock.manager_id LIMIT $2
