-- $1 bigint: entry
SELECT FROM purges WHERE id = $1 FOR UPDATE SKIP LOCKED
