DELETE FROM leases WHERE next_time < clock_timestamp() - interval '30 days'
    AND (leased_by IS NULL OR NOT leased_by IN (
        SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
