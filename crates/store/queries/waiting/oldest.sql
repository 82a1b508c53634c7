SELECT kind, coalesce(greatest(extract(epoch FROM clock_timestamp() - since), 0), 0)::float8 AS seconds
FROM (VALUES
    ('scan', (SELECT min(create_time) FROM scans WHERE NOT fanned_out AND NOT EXISTS (
        SELECT FROM leases WHERE kind = 'fan_out' AND key = scans.id::text AND next_time > clock_timestamp()))),
    ('backfill', least(
        (SELECT min(create_time) FROM backfills WHERE state = 'WAITING' AND catch_up_since IS NULL),
        (SELECT min(create_time) FROM look_backs))),
    ('purge', (SELECT min(create_time) FROM purges)),
    ('service_event', (SELECT create_time FROM service_events ORDER BY id LIMIT 1)),
    ('digest', (
        -- One step of the index for each Connection that gathers. What waits for the end of its period has a later time.
        WITH RECURSIVE one AS (
            (SELECT namespace_id, connection_id, create_time FROM digest_scans WHERE delivery_id IS NULL
             ORDER BY connection_id, create_time LIMIT 1)
            UNION ALL
            SELECT next.* FROM one CROSS JOIN LATERAL (
                SELECT namespace_id, connection_id, create_time FROM digest_scans
                WHERE delivery_id IS NULL AND connection_id > one.connection_id
                ORDER BY connection_id, create_time LIMIT 1
            ) AS next
        )
        -- A day has at most 25 hours, and the next one at least 23. A Connection gets its digest when it is enabled.
        SELECT min(greatest(c.update_time, CASE c.digest
            WHEN 'HOURLY' THEN digest_period_begin(c.digest, one.create_time, c.time_zone) + interval '1 hour'
            WHEN 'DAILY' THEN digest_period_begin(c.digest,
                digest_period_begin(c.digest, one.create_time, c.time_zone) + interval '26 hours', c.time_zone)
            ELSE one.create_time END))
        FROM one JOIN connections AS c ON c.namespace_id = one.namespace_id AND c.id = one.connection_id
            AND c.state = 'ACTIVE'
        WHERE NOT EXISTS (SELECT FROM leases AS l WHERE l.kind = 'digest' AND l.key = one.connection_id::text
            AND l.leased_by IS NULL AND l.next_time > clock_timestamp())))) AS work (kind, since)
