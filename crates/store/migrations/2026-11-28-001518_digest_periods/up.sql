-- The beginning of the hour or day of digests. The gateway takes only zones that PostgreSQL knows. Another version may not know one of
-- them any more, which must not stop the digests of all: it counts as UTC.
CREATE FUNCTION digest_period_begin(period text, moment timestamptz, zone_name text) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    unit text := CASE period WHEN 'HOURLY' THEN 'hour' ELSE 'day' END;
BEGIN
    RETURN date_trunc(unit, moment, zone_name);
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN date_trunc(unit, moment, 'UTC');
END $$;
