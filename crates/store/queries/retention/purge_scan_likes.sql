-- $1 text: first create_time
-- $2 text: end
-- $3 bigint: most rows
WITH gone AS (
    DELETE FROM scan_likes WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM scan_likes WHERE create_time >= $1::timestamptz AND create_time < $2::timestamptz
        ORDER BY create_time LIMIT $3))
    RETURNING create_time AS at
)
SELECT count(*) AS count, (SELECT at::text FROM gone ORDER BY at DESC LIMIT 1) AS last FROM gone
