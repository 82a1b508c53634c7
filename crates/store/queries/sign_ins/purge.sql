-- $1 bigint: most rows
DELETE FROM sign_ins WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM sign_ins WHERE expire_time < clock_timestamp()
    ORDER BY expire_time LIMIT $1 FOR UPDATE SKIP LOCKED))
