-- $1 timestamptz: before
DELETE FROM replays WHERE state <> 'RUNNING' AND update_time < $1
