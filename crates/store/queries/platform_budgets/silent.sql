-- $1 text: credential
SELECT extract(epoch FROM silent_until - clock_timestamp())::float8 AS seconds
FROM platform_budgets WHERE credential = $1
