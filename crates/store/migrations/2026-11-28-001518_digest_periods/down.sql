DROP FUNCTION digest_period_begin(text, timestamptz, text);
