SELECT kind, coalesce(greatest(extract(epoch FROM clock_timestamp() - since), 0), 0)::float8 AS seconds
FROM (VALUES
    ('scan', (SELECT min(create_time) FROM scans WHERE NOT fanned_out AND NOT EXISTS (
        SELECT FROM leases WHERE kind = 'fan_out' AND key = scans.id::text AND next_time > clock_timestamp()))),
    ('backfill', least(
        (SELECT min(create_time) FROM backfills WHERE state = 'WAITING' AND catch_up_since IS NULL),
        (SELECT min(create_time) FROM look_backs))),
    ('purge', (SELECT min(create_time) FROM purges))) AS work (kind, since)
