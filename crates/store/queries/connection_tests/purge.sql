DELETE FROM connection_tests WHERE create_time < clock_timestamp() - interval '1 minute'
