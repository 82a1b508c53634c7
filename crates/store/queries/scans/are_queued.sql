-- $1 bigint: number of Scans that are enough
SELECT FROM scans WHERE NOT fanned_out ORDER BY create_time LIMIT $1
