-- $1 uuid: namespace of the Manager before the page
-- $2 uuid: that Manager
-- $3 bigint: most Managers
-- $4 bigint: bytes that end the page
-- Bytes are counted by triggers: only instructions that were written before are measured.
SELECT namespace_id, id, enable, instructions, mutes, languages FROM (
    SELECT *, sum(coalesce(content_bytes, octet_length(instructions::text), 0)) OVER (
        ORDER BY namespace_id, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT namespace_id, id, enable, instructions, mutes, languages, content_bytes FROM managers
        -- As one comparison of rows, which the primary key serves directly.
        WHERE (namespace_id, id) > ($1, $2) ORDER BY namespace_id, id LIMIT $3
    ) AS next
) AS page
WHERE bytes_before IS NULL OR bytes_before < $4 ORDER BY namespace_id, id
