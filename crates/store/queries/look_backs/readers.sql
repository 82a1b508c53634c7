-- $1 bigint: look-back
SELECT namespace_id, manager_id, since, before, catch_up_since FROM backfills
WHERE look_back_id = $1 AND since IS NOT NULL AND before IS NOT NULL
