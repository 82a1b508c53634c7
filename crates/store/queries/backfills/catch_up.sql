-- $1 uuid[]: namespaces
-- $2 uuid[]: managers
-- $3 timestamptz[]: refused since
-- $4 double precision: seconds that a first backfill goes back
INSERT INTO backfills AS b (namespace_id, manager_id, feed, notify, since, catch_up_since)
SELECT w.namespace_id, w.manager_id, w.feed, true, given.since, given.since
FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, since)
JOIN feed_watchers AS w ON w.namespace_id = given.namespace_id AND w.manager_id = given.manager_id
ORDER BY w.namespace_id, w.manager_id, w.feed
ON CONFLICT (namespace_id, manager_id, feed, notify) DO UPDATE
    SET since = least(excluded.since,
            CASE WHEN b.state IN ('WAITING', 'READING')
                THEN coalesce(b.since, b.create_time - $4 * interval '1 second') END,
            CASE WHEN b.state <> 'DONE' THEN b.catch_up_since END),
        -- A failed one owes refused posts too.
        catch_up_since = least(excluded.catch_up_since, CASE WHEN b.state <> 'DONE' THEN b.catch_up_since END),
        state = 'WAITING', look_back_id = NULL, before = NULL, reach_time = NULL,
        failure_count = 0, error = NULL, next_time = NULL,
        create_time = clock_timestamp(), update_time = clock_timestamp()
