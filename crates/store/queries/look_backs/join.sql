-- $1 text: feed
-- $2 boolean: whether Scans are delivered
-- $3 timestamptz: since
UPDATE look_backs SET since = least(since, $3) WHERE id = (
    SELECT id FROM look_backs WHERE feed = $1 AND notify = $2 AND cursor IS NULL AND leased_by IS NULL
    LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
