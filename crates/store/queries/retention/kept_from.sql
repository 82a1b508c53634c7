-- $1 text: table
SELECT min((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''(.*)''\) TO'))[1]::timestamptz) AS start_time
FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass
