-- $1 uuid: id
-- $2 uuid: account
-- $3 bytea: secret_hash
-- $4 text: role
-- $5 text: person
-- $6 text: subject
-- $7 interval: how long it lasts
SELECT open_session($1, $2, $3, $4, $5, $6, $7)
