-- $1 text[]: feeds
-- $2 integer: days, including today
-- $3 uuid: namespace
SELECT d.feed, to_char(d.day, 'YYYY-MM-DD') AS day,
    greatest(d.posts - coalesce((others.before->>'posts')::bigint, 0), 0) AS posts,
    greatest(d.late - coalesce((others.before->>'late')::bigint, 0), 0) AS late,
    greatest(d.gone - coalesce((others.before->>'gone')::bigint, 0), 0) AS gone,
    greatest(d.quarantined - coalesce((others.before->>'quarantined')::bigint, 0), 0) AS quarantined,
    greatest(d.gaps - coalesce((others.before->>'gaps')::bigint, 0), 0) AS gaps,
    greatest(d.ids_read - coalesce((others.before->>'ids_read')::bigint, 0), 0) AS ids_read,
    greatest(d.ids_other - coalesce((others.before->>'ids_other')::bigint, 0), 0) AS ids_other,
    greatest(d.ids_gone - coalesce((others.before->>'ids_gone')::bigint, 0), 0) AS ids_gone,
    ids_up_to
FROM feed_days AS d
LEFT JOIN account_feeds AS a ON a.feed = d.feed
    AND a.account_id = (SELECT account_id FROM namespaces WHERE id = $3)
CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched
CROSS JOIN LATERAL (SELECT (since AT TIME ZONE 'UTC')::date AS first_day) AS first
CROSS JOIN LATERAL (SELECT CASE WHEN d.day = first_day THEN a.before->'day' END AS before) AS others
WHERE d.feed = ANY ($1) AND d.day > (clock_timestamp() AT TIME ZONE 'UTC')::date - $2
    AND d.day >= first_day AND to_jsonb(d) IS DISTINCT FROM others.before
ORDER BY d.feed, d.day DESC
