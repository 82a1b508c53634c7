-- $1 uuid: account
-- $2 uuid: namespace
-- $3 uuid: id
-- $4 timestamptz: create_time
-- $5 text: action
-- $6 text: resource
-- $7 text[]: fields
-- $8 text: actor_type
-- $9 uuid: API key
-- $10 text: client_address
-- $11 text: request_id
-- $12 timestamptz: time since when the same read of secrets is not recorded again
INSERT INTO audit_events (account_id, namespace_id, id, create_time, action, resource, fields, actor_type,
    key_id, client_address, request_id)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
WHERE $5 <> 'READ_SECRETS' OR NOT EXISTS (
    SELECT FROM audit_events
    WHERE action = 'READ_SECRETS' AND key_id = $9 AND resource = $6 AND create_time > $12
        AND client_address IS NOT DISTINCT FROM $10)
