-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 timestamptz: update_time of the Scan
-- $4 timestamptz: create_time of the Scan
INSERT INTO manager_verdicts AS v (namespace_id, manager_id, count)
SELECT namespace_id, id, 1 FROM managers
WHERE namespace_id = $1 AND id = $2 AND mode = 'AUTOMATIC' AND ($3 = $4 OR $3 <= apply_time)
ON CONFLICT (namespace_id, manager_id) DO UPDATE SET count = v.count + 1
