-- $1 uuid: account
-- Rows from before the column are counted from their values.
SELECT coalesce(
    (SELECT sum(coalesce(content_bytes, bytes_of_content(NULL, NULL, mutes))) FROM namespaces WHERE account_id = $1)
    + coalesce((
        SELECT sum(coalesce(m.content_bytes, bytes_of_content(m.instructions, m.submitted_instructions, m.mutes)))
        FROM namespaces AS n JOIN managers AS m ON m.namespace_id = n.id WHERE n.account_id = $1), 0), 0)::bigint
    AS bytes
