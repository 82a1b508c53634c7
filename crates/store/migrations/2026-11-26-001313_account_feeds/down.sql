DROP TABLE account_feeds;
