-- $1 text: credential
SELECT ledger, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
    extract(epoch FROM silent_until - clock_timestamp())::float8 AS silent_seconds
FROM platform_budgets WHERE credential = $1 FOR UPDATE
