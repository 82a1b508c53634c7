DROP TABLE purges;
