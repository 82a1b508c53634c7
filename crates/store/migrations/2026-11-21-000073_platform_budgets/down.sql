DROP TABLE platform_budgets;
