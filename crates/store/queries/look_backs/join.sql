-- $1 text: feed
-- $2 boolean: whether Scans are delivered
-- $3 timestamptz: since
-- $4 uuid: account
UPDATE look_backs SET since = least(since, $3) WHERE id = (
    SELECT id FROM look_backs AS l WHERE feed = $1 AND notify = $2 AND cursor IS NULL AND leased_by IS NULL
        -- All Managers of a look-back are of one account, so one of them is enough.
        AND (SELECT n.account_id FROM backfills AS b JOIN namespaces AS n ON n.id = b.namespace_id
            WHERE b.look_back_id = l.id LIMIT 1) = $4
    LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
