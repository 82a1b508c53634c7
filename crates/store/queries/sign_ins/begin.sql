-- $1 bytea: state_hash
-- $2 bytea: browser_hash
-- $3 text: origin
-- $4 bytea: sealed
-- $5 interval: how long the person has
-- $6 bigint: most sign-ins in progress of one origin
INSERT INTO sign_ins (state_hash, browser_hash, origin, sealed, expire_time)
SELECT $1, $2, $3, $4, clock_timestamp() + $5
WHERE (SELECT count(*) FROM sign_ins WHERE origin = $3 AND expire_time > clock_timestamp()) < $6
