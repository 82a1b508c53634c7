DROP TABLE platform_budget_shares;
