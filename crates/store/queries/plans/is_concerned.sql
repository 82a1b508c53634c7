-- $1 text: feed
-- $2 uuid[]: namespaces
-- $3 uuid[]: Managers
SELECT EXISTS (
    SELECT FROM unnest($2, $3) AS given (namespace_id, manager_id)
    CROSS JOIN LATERAL (
        SELECT FROM feed_watchers AS watcher
        WHERE watcher.feed = $1 AND watcher.namespace_id = given.namespace_id
            -- The mutes of a Namespace are logged under the lowest id, and concern all its Managers.
            AND watcher.manager_id >= given.manager_id
            AND watcher.manager_id <= CASE
                WHEN given.manager_id = '00000000-0000-0000-0000-000000000000'
                THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff' ELSE given.manager_id END
        LIMIT 1
    ) AS watching
) AS found
