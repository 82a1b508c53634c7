-- $1 bytea: state_hash
-- $2 bytea: browser_hash
-- $3 text: name of the account
-- $4 text: role
-- $5 text: person
-- $6 text: subject
-- $7 interval: how long the console has
WITH account AS (
    SELECT id FROM accounts WHERE name = $3
), granted AS (
    UPDATE sign_ins
    SET account_id = account.id, role = $4, person = $5, subject = $6, expire_time = clock_timestamp() + $7
    FROM account
    WHERE state_hash = $1 AND browser_hash = $2 AND sealed IS NULL AND person IS NULL
    RETURNING account_id
)
SELECT EXISTS (SELECT FROM account) AS has_account, EXISTS (SELECT FROM granted) AS is_granted
