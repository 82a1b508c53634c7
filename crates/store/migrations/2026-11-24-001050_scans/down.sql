DROP TABLE rechecks, scan_likes, scans, scan_clocks, scan_keys, post_keys, posts;
