-- $1 bigint: most Managers to count
WITH pending AS (
    SELECT count(*) AS count,
        coalesce(extract(epoch FROM greatest(clock_timestamp() - min(submit_time), interval '0')), 0)::float8 AS age
    FROM managers WHERE state = 'PENDING_APPLY'
), failed AS (
    SELECT count(*) AS count FROM managers WHERE state = 'APPLY_FAILED'
), all_states AS (
    SELECT CASE WHEN reltuples > $1 THEN reltuples::bigint ELSE (SELECT count(*) FROM managers) END AS count
    FROM pg_class WHERE oid = 'managers'::regclass
) SELECT 'PENDING_APPLY' AS state, count, age AS oldest_seconds FROM pending
UNION ALL SELECT 'APPLY_FAILED', count, 0 FROM failed
UNION ALL SELECT 'APPLIED', greatest(a.count - p.count - f.count, 0), 0
    FROM all_states AS a, pending AS p, failed AS f
