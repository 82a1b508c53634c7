-- $1 uuid: namespace
-- $2 bytea: digest of the address
DELETE FROM account_mail_addresses AS a USING namespaces AS n
WHERE n.id = $1 AND a.account_id = n.account_id AND a.address_digest = $2
