-- $1 text[]: tables
SELECT coalesce(bool_or(to_regclass(parent ||
    to_char(date_trunc('week', clock_timestamp() AT TIME ZONE 'UTC'), '"_"YYYYMMDD')) IS NULL), false) AS lacks
FROM unnest($1) AS parent
