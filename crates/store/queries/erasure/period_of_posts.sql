SELECT min(receive_time) AS oldest, max(receive_time) AS newest FROM posts
