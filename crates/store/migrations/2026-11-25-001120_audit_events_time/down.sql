DROP INDEX audit_events_time_idx;
