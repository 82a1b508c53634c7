-- What each account has taken of a platform's paid posts, so that none spends what is another's. Written by the scanner
-- in the transaction that takes them, under the lock of the credential's row in platform_budgets; one row for each
-- account and credential.
CREATE TABLE platform_budget_shares (
    credential text NOT NULL CONSTRAINT platform_budget_shares_credential_fkey
        REFERENCES platform_budgets (credential) ON DELETE CASCADE,
    account_id uuid NOT NULL CONSTRAINT platform_budget_shares_account_fkey
        REFERENCES accounts (id) ON DELETE CASCADE,
    day date NOT NULL,
    day_posts integer NOT NULL,
    CONSTRAINT platform_budget_shares_pkey PRIMARY KEY (credential, account_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN platform_budget_shares.day IS 'the UTC day of day_posts';
