DROP INDEX scans_namespace_idx;
