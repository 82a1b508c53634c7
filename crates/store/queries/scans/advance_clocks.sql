-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 integer[]: Scans of each
-- $4 date[]: quota_day
-- $5 integer[]: quota_made
-- $6 integer[]: quota_suppressed
-- $7 double precision[]: quota_lowest
-- $8 double precision[]: quota_highest
UPDATE scan_clocks AS clock SET last_time = CASE WHEN given.count = 0 THEN clock.last_time ELSE
        greatest(clock_timestamp(), clock.last_time + interval '1 microsecond')
        + (given.count - 1) * interval '1 microsecond' END,
    quota_day = coalesce(given.day, clock.quota_day),
    quota_made = coalesce(given.made, clock.quota_made),
    quota_suppressed = coalesce(given.suppressed, clock.quota_suppressed),
    quota_lowest = coalesce(given.lowest, clock.quota_lowest),
    quota_highest = coalesce(given.highest, clock.quota_highest)
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
    AS given (namespace_id, manager_id, count, day, made, suppressed, lowest, highest)
WHERE clock.namespace_id = given.namespace_id AND clock.manager_id = given.manager_id
RETURNING clock.namespace_id, clock.manager_id,
    clock.last_time - (given.count - 1) * interval '1 microsecond' AS first_time
