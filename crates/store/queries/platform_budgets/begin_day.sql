-- $1 text: credential
WITH today AS (
    SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day,
        extract(epoch FROM date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day'
            - clock_timestamp())::float8 AS rest_seconds
) UPDATE platform_budgets AS b SET day = today.day,
    day_posts = CASE WHEN b.day = today.day THEN b.day_posts ELSE 0 END
FROM today WHERE credential = $1 RETURNING b.day_posts AS had, today.rest_seconds
