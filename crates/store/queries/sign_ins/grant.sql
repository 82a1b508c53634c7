-- $1 bytea: state_hash
-- $2 bytea: browser_hash
-- $3 text: origin
-- $4 text: name of the account
-- $5 text: role
-- $6 text: person
-- $7 text: subject
-- $8 interval: how long the console has
INSERT INTO sign_ins (state_hash, browser_hash, origin, account_id, role, person, subject, expire_time)
SELECT $1, $2, $3, id, $5, $6, $7, clock_timestamp() + $8 FROM accounts WHERE name = $4
