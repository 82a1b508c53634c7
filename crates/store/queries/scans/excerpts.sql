-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 timestamptz[]: create_time
-- $4 uuid[]: ids
-- $5 integer: most characters of a title and of a text
-- A mail shows neither the ids, nor the spans of a match, nor more than ten terms.
SELECT s.namespace_id, s.manager_id, s.id,
    s.matched - 'spans' || jsonb_build_object('terms', jsonb_path_query_array(s.matched, '$.terms[0 to 9]')) AS matched,
    p.type AS post_type, p.time, '' AS native_id, left(p.title, $5) AS title, left(p.text, $5) AS text,
    -- No mail has a link to a longer address.
    CASE WHEN octet_length(p.url) <= 2000 THEN p.url ELSE '' END AS post_url,
    CASE WHEN p.subforum_name IS NOT NULL THEN '' END AS subforum_id, left(p.subforum_name, 300) AS subforum_name,
    CASE WHEN p.subforum_name IS NOT NULL THEN '' END AS subforum_url,
    '' AS user_id, left(p.user_name, 300) AS user_name, '' AS user_url
FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS given (namespace_id, manager_id, create_time, id, position)
CROSS JOIN LATERAL (
    SELECT * FROM scans WHERE namespace_id = given.namespace_id AND manager_id = given.manager_id
        AND create_time = given.create_time AND id = given.id LIMIT 1
) AS s
CROSS JOIN LATERAL (SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1) AS p
WHERE EXISTS (SELECT FROM managers AS m WHERE m.namespace_id = s.namespace_id AND m.id = s.manager_id)
ORDER BY given.position
