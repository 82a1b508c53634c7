-- $1 uuid: account
SELECT count(*) AS count FROM namespaces AS n JOIN managers AS m ON m.namespace_id = n.id WHERE n.account_id = $1
