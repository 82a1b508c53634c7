-- $1 text: first create_time
-- $2 text: end
-- $3 bigint: most rows
WITH gone AS (
    DELETE FROM audit_events WHERE ctid = ANY (ARRAY(
        -- As `audit_events_time_idx` has it.
        SELECT ctid FROM audit_events
        WHERE (create_time AT TIME ZONE 'UTC') >= $1::timestamp AND (create_time AT TIME ZONE 'UTC') < $2::timestamp
        ORDER BY (create_time AT TIME ZONE 'UTC') LIMIT $3))
    RETURNING (create_time AT TIME ZONE 'UTC') AS at
)
SELECT count(*) AS count, (SELECT at::text FROM gone ORDER BY at DESC LIMIT 1) AS last FROM gone
