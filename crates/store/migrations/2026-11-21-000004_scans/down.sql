DROP TABLE scans, scan_clocks, scan_keys, post_keys, posts;
