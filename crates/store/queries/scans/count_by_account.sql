-- $1 uuid[]: accounts
-- $2 bigint[]: Scans of each
INSERT INTO account_days AS d (account_id, day, scans)
SELECT account_id, (statement_timestamp() AT TIME ZONE 'UTC')::date, scans
FROM unnest($1, $2) AS given (account_id, scans) ORDER BY account_id
ON CONFLICT (account_id, day) DO UPDATE SET scans = d.scans + excluded.scans
RETURNING account_id, scans
