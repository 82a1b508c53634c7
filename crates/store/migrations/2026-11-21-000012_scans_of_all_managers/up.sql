-- The Scans of all Managers of a Namespace in the order of their making, for `managers/-/scans`.
CREATE INDEX scans_namespace_idx ON scans (namespace_id, create_time, id);
