-- $1 text: credential
-- $2 uuid: account
-- $3 integer: posts
INSERT INTO platform_budget_shares AS s (credential, account_id, day, day_posts)
SELECT credential, $2, day, $3 FROM platform_budgets WHERE credential = $1
ON CONFLICT (credential, account_id) DO UPDATE SET day = excluded.day, day_posts =
    excluded.day_posts + CASE WHEN s.day = excluded.day THEN s.day_posts ELSE 0 END
