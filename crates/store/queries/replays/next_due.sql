SELECT extract(epoch FROM min(next_batch_time) - clock_timestamp())::float8 AS seconds
FROM replays WHERE state = 'RUNNING'
