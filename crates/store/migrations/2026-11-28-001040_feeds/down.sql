DROP TABLE platform_budget_shares, platform_budgets, quarantined_posts, feed_missing_ids, feed_gaps, feed_days,
    address_keys, feed_post_ids, recent_posts, account_feeds, feed_watchers, feeds;
