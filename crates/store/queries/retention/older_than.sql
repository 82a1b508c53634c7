-- $1 text: table
-- $2 timestamptz: latest end
SELECT p.name, p.bounds[1]::timestamptz AS start_time, p.bounds[2]::timestamptz AS end_time FROM (
    SELECT c.relname::text AS name,
        regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''(.*)''\) TO \(''(.*)''\)') AS bounds
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = $1::regclass
) AS p
WHERE p.bounds[2]::timestamptz <= $2 ORDER BY end_time
