DROP TABLE platform_budget_shares, platform_budgets, quarantined_posts, feed_missing_ids, feed_gaps, feed_days,
    address_keys, recent_posts, feed_watchers, feeds;
