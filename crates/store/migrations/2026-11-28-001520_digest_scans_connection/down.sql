DELETE FROM digest_scans AS d
WHERE NOT EXISTS (SELECT FROM connections AS c WHERE c.namespace_id = d.namespace_id AND c.id = d.connection_id);
ALTER TABLE digest_scans ADD CONSTRAINT digest_scans_connection_fkey FOREIGN KEY (namespace_id, connection_id)
    REFERENCES connections (namespace_id, id) ON DELETE CASCADE;
