-- $1 uuid: API key
-- $2 uuid: account
WITH key AS (
    INSERT INTO rate_ledgers (api_key_id, ledger) VALUES ($1, '{"leases": [], "spent": []}')
    ON CONFLICT (api_key_id) DO NOTHING
)
INSERT INTO account_rate_ledgers (account_id, ledger) VALUES ($2, '{"leases": [], "spent": []}')
ON CONFLICT (account_id) DO NOTHING
