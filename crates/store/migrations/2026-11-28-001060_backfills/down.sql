DROP TABLE backfills, look_backs;
