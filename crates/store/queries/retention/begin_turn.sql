-- $1 text: name of the lock
SELECT pg_try_advisory_lock(hashtext($1)) AS had
