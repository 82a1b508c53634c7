-- $1 double precision: longest time in seconds that a rate can be spent ahead
-- $2 double precision: longest time in seconds that a circuit breaker or a probe is open
UPDATE connection_lanes SET next_due_time = clock_timestamp(),
    rate_time = CASE WHEN coalesce(rate_time > clock_timestamp() + $1 * interval '1 second', false)
        THEN NULL ELSE rate_time END,
    open_until = CASE WHEN coalesce(open_until > clock_timestamp() + $2 * interval '1 second', false)
        THEN clock_timestamp() ELSE open_until END,
    probe_end_time = CASE WHEN coalesce(probe_end_time > clock_timestamp() + $2 * interval '1 second', false)
        THEN clock_timestamp() ELSE probe_end_time END
WHERE coalesce(rate_time > clock_timestamp() + $1 * interval '1 second', false)
    OR coalesce(open_until > clock_timestamp() + $2 * interval '1 second', false)
    OR coalesce(probe_end_time > clock_timestamp() + $2 * interval '1 second', false)
