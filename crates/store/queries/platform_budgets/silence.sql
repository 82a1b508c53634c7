-- $1 text: credential
-- $2 double precision: seconds
INSERT INTO platform_budgets AS b (credential, silent_until)
VALUES ($1, clock_timestamp() + $2 * interval '1 second') ON CONFLICT (credential) DO UPDATE
    SET silent_until = greatest(b.silent_until, excluded.silent_until)
