-- $1 uuid: API key
-- $2 uuid: account
SELECT key.ledger AS key_ledger, of_account.ledger AS account_ledger, account.quota_rate_limit_per_minute,
    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
FROM rate_ledgers AS key, account_rate_ledgers AS of_account, accounts AS account
WHERE key.api_key_id = $1 AND of_account.account_id = $2 AND account.id = $2
FOR UPDATE OF key, of_account
