-- $1 uuid: namespace
SELECT FROM accounts WHERE id = (SELECT account_id FROM namespaces WHERE id = $1) FOR NO KEY UPDATE
