-- $1 text: first id
-- $2 text: end
-- $3 bigint: most rows
WITH gone AS (
    DELETE FROM post_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM post_keys WHERE id >= $1::uuid AND id < $2::uuid
        ORDER BY id LIMIT $3))
    RETURNING id AS at
)
SELECT count(*) AS count, (SELECT at::text FROM gone ORDER BY at DESC LIMIT 1) AS last FROM gone
