-- $1 uuid: account
SELECT count(*) AS count FROM namespaces AS n JOIN connections AS c ON c.namespace_id = n.id WHERE n.account_id = $1
