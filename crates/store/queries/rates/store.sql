-- $1 uuid: API key
-- $2 jsonb: its ledger
-- $3 uuid: account
-- $4 jsonb: its ledger
WITH key AS (UPDATE rate_ledgers SET ledger = $2 WHERE api_key_id = $1)
UPDATE account_rate_ledgers SET ledger = $4 WHERE account_id = $3
