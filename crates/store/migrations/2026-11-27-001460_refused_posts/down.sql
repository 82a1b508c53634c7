DROP TABLE refused_posts;
