-- $1 text[]: names
-- $2 uuid: replica
-- $3 text[]: names that the replica has in hand or has postponed
-- $4 boolean: true if leases of silent replicas may be taken over
WITH due AS (
    SELECT name FROM feeds
    WHERE name = ANY ($1) AND watched AND name <> ALL ($3)
        AND (leased_by IS NULL OR leased_by = $2 OR $4 AND NOT leased_by IN (SELECT id FROM replicas
            WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
        AND next_poll_time <= clock_timestamp()
    FOR UPDATE SKIP LOCKED
)
UPDATE feeds SET leased_by = $2,
    crash_count = CASE WHEN feeds.clear_time IS NULL THEN feeds.crash_count
        WHEN feeds.clear_time < clock_timestamp() - interval '1 hour' THEN 0 ELSE least(feeds.crash_count, 4) END
        + CASE WHEN feeds.leased_by <> $2 AND feeds.leased_by IN (SELECT id FROM replicas
                WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
            AND NOT (feeds.crash_count >= 3 AND feeds.crash_count % 2 = 1) THEN 1 ELSE 0 END::smallint,
    clear_time = CASE WHEN feeds.leased_by <> $2 AND feeds.leased_by IN (SELECT id FROM replicas
        WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds') THEN NULL ELSE feeds.clear_time END
FROM due WHERE feeds.name = due.name
RETURNING feeds.name, cursor, failure_count, feeds.slow, posts_per_day, crash_count,
    feeds.crash_count >= 2 AND feeds.clear_time IS NULL AS is_suspect,
    CASE WHEN cursor IS NULL THEN create_time END AS first_watch_time, rewatch_time,
    late_time <= clock_timestamp() AS late_due,
    extract(epoch FROM clock_timestamp() - read_time)::float8 AS unread_seconds,
    extract(epoch FROM clock_timestamp() - next_poll_time)::float8 AS late_seconds
