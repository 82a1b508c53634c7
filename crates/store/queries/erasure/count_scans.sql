-- $1 timestamptz[]: post_receive_time
-- $2 uuid[]: post_id
SELECT count(*) AS number FROM scans WHERE post_receive_time = ANY ($1) AND post_id = ANY ($2)
