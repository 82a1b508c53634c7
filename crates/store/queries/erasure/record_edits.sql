-- $1 uuid[]: post_key
-- $2 bytea[]: digest of the present text of each
-- $3 text: characters that digests leave out
-- $4 bigint: most service events of a namespace
WITH edited AS (
    UPDATE posts AS p SET edit_digest = given.digest
    FROM unnest($1, $2) AS given (post_key, digest) JOIN post_keys AS k ON k.post_key = given.post_key
    WHERE p.receive_time = id_time(k.id) AND p.id = k.id AND p.erase_time IS NULL
        AND given.digest <> coalesce(p.edit_digest,
            sha256(convert_to(translate(coalesce(p.text, ''), $3, ''), 'UTF8')))
    RETURNING p.receive_time, p.id, p.post_id
), receiving AS MATERIALIZED (
    SELECT DISTINCT namespace_id FROM connections WHERE events <> '{}' AND 'POST_EDITED' = ANY (events)
), found AS MATERIALIZED (
    -- Reads no Scans if no Connection receives the event, or no post was edited.
    SELECT s.namespace_id, s.manager_id, s.id, s.post_receive_time, s.post_id FROM scans AS s
    WHERE EXISTS (SELECT FROM receiving) AND s.post_receive_time = ANY (ARRAY (SELECT receive_time FROM edited))
        AND s.post_id = ANY (ARRAY (SELECT id FROM edited))
)
INSERT INTO service_events (namespace_id, event_type, name, details)
SELECT s.namespace_id, 'POST_EDITED',
    'namespaces/' || ulid(s.namespace_id) || '/managers/' || ulid(s.manager_id) || '/scans/' || ulid(s.id),
    jsonb_build_object('post', jsonb_build_object('id', s.post_id))
FROM (
    SELECT s.namespace_id, s.manager_id, s.id, e.post_id,
        row_number() OVER (PARTITION BY s.namespace_id ORDER BY s.id DESC) AS rank
    FROM found AS s JOIN edited AS e ON e.receive_time = s.post_receive_time AND e.id = s.post_id
    WHERE s.namespace_id IN (SELECT namespace_id FROM receiving) AND EXISTS (
        SELECT FROM managers AS m WHERE m.namespace_id = s.namespace_id AND m.id = s.manager_id)
) AS s WHERE s.rank <= $4
