-- $1 double precision: longest age in seconds
DELETE FROM feed_days WHERE day < (clock_timestamp() AT TIME ZONE 'UTC' - $1 * interval '1 second')::date
