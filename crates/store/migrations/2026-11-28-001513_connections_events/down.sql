DROP INDEX connections_events_idx;
