-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bytea: new headers_sealed
-- $4 bytea: new signing_secrets_sealed
-- $5 bytea: new url_sealed
-- $6 text: new url
-- $7 bytea: headers_sealed
-- $8 bytea: signing_secrets_sealed
-- $9 bytea: url_sealed
-- $10 text: url
UPDATE connections SET headers_sealed = $3, signing_secrets_sealed = $4, url_sealed = $5, url = $6
WHERE namespace_id = $1 AND id = $2 AND headers_sealed = $7
    AND signing_secrets_sealed IS NOT DISTINCT FROM $8 AND url_sealed IS NOT DISTINCT FROM $9 AND url = $10
