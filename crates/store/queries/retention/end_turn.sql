-- $1 text: name of the lock
SELECT pg_advisory_unlock(hashtext($1))
