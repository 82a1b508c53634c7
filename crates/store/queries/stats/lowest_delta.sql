SELECT coalesce((SELECT id FROM stats_deltas ORDER BY id LIMIT 1),
    pg_sequence_last_value(pg_get_serial_sequence('stats_deltas', 'id')), 0) AS id
