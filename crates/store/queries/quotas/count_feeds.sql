-- $1 uuid: account
-- $2 uuid: namespace
-- $3 uuid: manager
-- $4 text[]: feeds
WITH watched AS (
    SELECT w.feed, (w.namespace_id, w.manager_id) = ($2, $3) AS own
    FROM namespaces AS n JOIN feed_watchers AS w ON w.namespace_id = n.id WHERE n.account_id = $1)
-- A hash of the feeds takes less time than sorting their names, which `count(DISTINCT)` does.
SELECT (SELECT count(*) FROM (SELECT feed FROM watched GROUP BY feed) AS feeds) AS before,
    (SELECT count(*) FROM (SELECT feed FROM watched WHERE NOT own UNION SELECT unnest($4)) AS feeds) AS after,
    (SELECT count(DISTINCT name) FROM unnest($4) AS given (name) WHERE NOT EXISTS (SELECT FROM account_feeds AS a
        WHERE a.account_id = $1 AND a.feed = given.name)) AS new,
    (SELECT count(*) FROM account_feeds
        WHERE account_id = $1 AND watch_time >= date_trunc('day', clock_timestamp(), 'UTC')) AS new_before
WHERE EXISTS (SELECT unnest($4) EXCEPT
    SELECT feed FROM feed_watchers WHERE namespace_id = $2 AND manager_id = $3)
