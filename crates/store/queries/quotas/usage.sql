-- $1 uuid: account
SELECT quota_namespaces, quota_managers, quota_connections, quota_feeds, quota_content_bytes, quota_scans_per_day,
    quota_rate_limit_per_minute,
    coalesce(
        (SELECT sum(coalesce(content_bytes, bytes_of_content(NULL, NULL, mutes))) FROM namespaces WHERE account_id = $1)
        + coalesce((
            SELECT sum(coalesce(m.content_bytes, bytes_of_content(m.instructions, m.submitted_instructions, m.mutes)))
            FROM namespaces AS n JOIN managers AS m ON m.namespace_id = n.id WHERE n.account_id = $1), 0), 0)::bigint
        AS content_bytes,
    (SELECT count(*) FROM namespaces WHERE account_id = $1) AS namespaces,
    (SELECT count(*) FROM namespaces AS n JOIN managers AS m ON m.namespace_id = n.id WHERE n.account_id = $1)
        AS managers,
    (SELECT count(*) FROM namespaces AS n JOIN connections AS c ON c.namespace_id = n.id WHERE n.account_id = $1)
        AS connections,
    coalesce((SELECT scans FROM account_days
        WHERE account_id = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date), 0) AS scans,
    f.feeds, f.watchers
-- A hash of the feeds takes less time than sorting their names, which `count(DISTINCT)` does.
FROM accounts CROSS JOIN (
    SELECT count(*) AS feeds, coalesce(sum(watchers), 0)::bigint AS watchers FROM (
        SELECT count(*) AS watchers FROM namespaces AS n JOIN feed_watchers AS w ON w.namespace_id = n.id
        WHERE n.account_id = $1 GROUP BY w.feed) AS each) AS f
WHERE id = $1
