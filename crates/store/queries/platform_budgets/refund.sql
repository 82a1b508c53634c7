-- $1 text: credential
-- $2 integer: posts
UPDATE platform_budgets SET day_posts = greatest(day_posts - $2, 0)
WHERE credential = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date
