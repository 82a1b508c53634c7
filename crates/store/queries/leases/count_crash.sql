-- $1 text: kind
-- $2 text: key
-- $3 uuid: replica
-- $4 double precision: seconds until it is due again
UPDATE leases SET leased_by = NULL, crash_count = crash_count + 1,
    next_time = clock_timestamp() + $4 * interval '1 second'
WHERE kind = $1 AND key = $2 AND leased_by = $3
