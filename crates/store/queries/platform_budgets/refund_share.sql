-- $1 text: credential
-- $2 integer: posts
-- $3 uuid: account
UPDATE platform_budget_shares SET day_posts = greatest(day_posts - $2, 0)
WHERE credential = $1 AND account_id = $3 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date
