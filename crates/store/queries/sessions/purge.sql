-- $1 interval: time since the end
-- $2 integer: most rows
SELECT purge_sessions($1, $2) AS purged
