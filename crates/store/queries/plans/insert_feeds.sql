-- $1 text[]: feeds
-- $2 text[]: their platforms
INSERT INTO feeds (name, platform, watched, next_poll_time, create_time)
SELECT name, platform, true, clock_timestamp(), clock_timestamp()
FROM unnest($1, $2) AS given (name, platform) ORDER BY name ON CONFLICT (name) DO NOTHING
