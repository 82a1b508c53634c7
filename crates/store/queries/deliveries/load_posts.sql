-- $1 uuid[]: ids
-- $2 timestamptz[]: receive_time of each
SELECT p.id AS key,
    p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, p.subforum_id,
    p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url
FROM unnest($1, $2) AS given (id, receive_time)
CROSS JOIN LATERAL (
    SELECT * FROM posts WHERE receive_time = given.receive_time AND id = given.id LIMIT 1
) AS p
WHERE p.erase_time IS NULL
