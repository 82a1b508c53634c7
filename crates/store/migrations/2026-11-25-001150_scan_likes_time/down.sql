DROP INDEX scan_likes_time_idx;
