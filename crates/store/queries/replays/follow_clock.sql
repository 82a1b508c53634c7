UPDATE replays SET next_batch_time = clock_timestamp()
WHERE state = 'RUNNING' AND next_batch_time > clock_timestamp()
