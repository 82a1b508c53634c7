-- $1 text[]: feeds
-- $2 uuid: account
-- $3 double precision: longest age in seconds
-- $4 double precision: seconds that count from before the account watched a feed
SELECT CASE WHEN count(*) = count(since) THEN max(since) END AS since FROM (
    SELECT CASE WHEN f.kept_since IS NOT NULL
            AND (own.feed IS NULL OR coalesce(f.read_time, f.last_poll_time) >= own.watch_time) THEN
        greatest(f.kept_since, clock_timestamp() - $3 * interval '1 second',
            own.watch_time - $4 * interval '1 second') END AS since
    FROM unnest($1) AS given (name) LEFT JOIN feeds AS f ON f.name = given.name
    LEFT JOIN account_feeds AS own ON own.account_id = $2 AND own.feed = given.name
) AS of_each
