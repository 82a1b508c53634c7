-- $1 uuid: account
SELECT count(*) AS count FROM namespaces WHERE account_id = $1
