-- $1 text: feed
-- $2 text[]: kinds of the listed posts
-- $3 text[]: post_id of each, or NULL
-- $4 text[]: reason of each
-- $5 bigint: most posts of a feed that are listed
-- $6 bigint: posts to count
-- $7 text: quarantine_reason
WITH counted AS (
    UPDATE feeds SET quarantine_count = quarantine_count + $6,
        quarantine_time = clock_timestamp(), quarantine_reason = $7 WHERE name = $1
), forgotten AS (
    DELETE FROM quarantined_posts WHERE feed = $1 AND id <= (
        SELECT id FROM quarantined_posts WHERE feed = $1
        ORDER BY id DESC OFFSET $5 - cardinality($2) LIMIT 1)
)
INSERT INTO quarantined_posts (feed, quarantine_time, kind, post_id, reason)
SELECT $1, clock_timestamp(), kind, post_id, reason
FROM unnest($2, $3, $4) AS given (kind, post_id, reason)
