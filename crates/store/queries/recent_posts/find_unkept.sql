-- $1 text: feed
-- $2 uuid[]: keys
-- $3 timestamptz[]: times
-- $4 text[]: ids
-- $5 double precision: longest age in seconds of an id in `feed_post_ids`
-- $6 bigint[]: gaps
SELECT given.id FROM feeds AS f CROSS JOIN unnest($2, $3, $4) AS given (post_key, time, id)
WHERE f.name = $1
    AND (given.time >= least(f.kept_since, f.ids_since) OR EXISTS (
        SELECT FROM feed_gaps AS gap WHERE gap.id = ANY ($6) AND gap.feed = $1
            AND given.time BETWEEN gap.start_time AND gap.end_time))
    AND given.time > clock_timestamp() - $5 * interval '1 second'
    AND NOT EXISTS (SELECT FROM recent_posts AS kept WHERE kept.post_key = given.post_key AND kept.feed = $1)
    AND NOT EXISTS (SELECT FROM quarantined_posts AS odd WHERE odd.feed = $1 AND odd.post_id = given.id)
