DROP TABLE missing_posts;
