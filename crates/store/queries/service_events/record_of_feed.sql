-- $1 text: feed
-- $2 text: event_type
-- $3 jsonb: details
-- $4 timestamptz: start of the gap; NULL if it is unknown or there is no gap
-- $5 timestamptz: end of the gap
INSERT INTO service_events (namespace_id, event_type, name, details)
SELECT receiving.namespace_id, $2, 'namespaces/' || ulid(receiving.namespace_id),
    -- As in feeds/gaps: no start from before the account's first watch.
    CASE WHEN $4 < a.watch_time AND a.watch_time < $5 THEN jsonb_set($3, '{gap,from}',
            to_jsonb(to_char(a.watch_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))
        WHEN $4 < a.watch_time THEN $3 #- '{gap,from}'
        ELSE $3 END
FROM (SELECT DISTINCT namespace_id FROM connections WHERE events <> '{}' AND $2 = ANY (events)) AS receiving
JOIN namespaces AS n ON n.id = receiving.namespace_id
LEFT JOIN account_feeds AS a ON a.account_id = n.account_id AND a.feed = $1
WHERE EXISTS (SELECT FROM feed_watchers AS w WHERE w.feed = $1 AND w.namespace_id = receiving.namespace_id)
