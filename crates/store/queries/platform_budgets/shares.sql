-- $1 text: credential
-- $2 text: platform
-- $3 text: feed
SELECT n.account_id, bool_or(w.feed = $3) AS watches, coalesce(max(s.day_posts), 0) AS taken
FROM (SELECT DISTINCT w.namespace_id, w.feed FROM feeds AS f JOIN feed_watchers AS w ON w.feed = f.name
      WHERE f.platform = $2 AND f.watched) AS w
JOIN namespaces AS n ON n.id = w.namespace_id
LEFT JOIN platform_budget_shares AS s ON s.credential = $1 AND s.account_id = n.account_id
    AND s.day = (SELECT day FROM platform_budgets WHERE credential = $1)
GROUP BY n.account_id ORDER BY n.account_id
