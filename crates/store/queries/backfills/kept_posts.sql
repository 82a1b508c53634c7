-- $1 text: feed
SELECT cursor IS NOT NULL AS is_read,
    greatest(kept_since, clock_timestamp() - interval '72 hours') AS kept_since
FROM feeds WHERE name = $1 AND kept_since IS NOT NULL
UNION ALL SELECT cursor IS NOT NULL, NULL FROM feeds WHERE name = $1 AND kept_since IS NULL
