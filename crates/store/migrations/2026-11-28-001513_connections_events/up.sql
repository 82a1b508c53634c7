-- Finds the Namespaces with a Connection that receives service events, which are few.
CREATE INDEX CONCURRENTLY IF NOT EXISTS connections_events_idx ON connections (namespace_id) WHERE events <> '{}';
