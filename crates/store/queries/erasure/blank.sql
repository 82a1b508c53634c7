-- $1 uuid[]: ids
-- $2 timestamptz[]: receive_time of each
-- $3 bigint: most service events of a namespace
WITH blanked AS (
    UPDATE posts AS p SET title = left(title, 0), text = left(text, 0), user_id = '', user_name = '', user_url = '',
        edit_digest = NULL, erase_time = clock_timestamp()
    FROM unnest($1, $2) AS given (id, receive_time)
    WHERE p.receive_time = given.receive_time AND p.id = given.id AND p.erase_time IS NULL
    RETURNING p.receive_time, p.id, p.post_id
), receiving AS MATERIALIZED (
    SELECT DISTINCT namespace_id FROM connections WHERE events <> '{}' AND 'POST_DELETED' = ANY (events)
), found AS MATERIALIZED (
    -- Reads no Scans if no Connection receives the event.
    SELECT s.namespace_id, s.manager_id, s.id, s.post_receive_time, s.post_id FROM scans AS s
    WHERE EXISTS (SELECT FROM receiving) AND s.post_receive_time = ANY ($2) AND s.post_id = ANY ($1)
), recorded AS (
    INSERT INTO service_events (namespace_id, event_type, name, details)
    SELECT s.namespace_id, 'POST_DELETED',
        'namespaces/' || ulid(s.namespace_id) || '/managers/' || ulid(s.manager_id) || '/scans/' || ulid(s.id),
        jsonb_build_object('post', jsonb_build_object('id', s.post_id))
    FROM (
        SELECT s.namespace_id, s.manager_id, s.id, b.post_id,
            row_number() OVER (PARTITION BY s.namespace_id ORDER BY s.id DESC) AS rank
        FROM found AS s JOIN blanked AS b ON b.receive_time = s.post_receive_time AND b.id = s.post_id
        WHERE s.namespace_id IN (SELECT namespace_id FROM receiving) AND EXISTS (
            SELECT FROM managers AS m WHERE m.namespace_id = s.namespace_id AND m.id = s.manager_id)
    ) AS s WHERE s.rank <= $3
)
SELECT count(*) AS number FROM blanked
