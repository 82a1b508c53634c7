-- $1 text: kind
-- $2 text: key
-- $3 uuid: replica
-- $4 text: reason
-- $5 double precision: seconds until it is due again
UPDATE leases SET leased_by = NULL, error = $4, next_time = clock_timestamp() + $5 * interval '1 second',
    crash_count = crash_count + CASE WHEN crash_count >= 3 THEN crash_count % 2 ELSE 0 END
WHERE kind = $1 AND key = $2 AND leased_by = $3
