-- $1 bytea: state_hash
-- $2 bytea: browser_hash
-- $3 text: origin
-- $4 bytea: sealed
-- $5 interval: how long the person has
-- $6 bigint: how many of this origin that wait for the provider stay next to this one
WITH oldest AS (
    SELECT state_hash FROM sign_ins WHERE state_hash IN (
        SELECT state_hash FROM sign_ins WHERE origin = $3 AND sealed IS NOT NULL
        ORDER BY expire_time DESC OFFSET $6)
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM sign_ins USING oldest WHERE sign_ins.state_hash = oldest.state_hash
)
INSERT INTO sign_ins (state_hash, browser_hash, origin, sealed, expire_time)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5)
