DROP TABLE missing_posts, rechecks, scan_likes, scans, refused_posts, scan_clocks, scan_keys, post_keys, posts;
