DELETE FROM backfills WHERE state IN ('DONE', 'FAILED')
    AND update_time < clock_timestamp() - interval '7 days'
