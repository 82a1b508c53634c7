-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
SELECT clock.namespace_id, clock.manager_id, clock_timestamp() AS now, manager.max_scans_per_day,
    clock.quota_day, clock.quota_made, clock.quota_suppressed, clock.quota_lowest, clock.quota_highest,
    coalesce(manager.duplicates = 'COLLAPSE', false) AS collapses,
    account.id AS account_id, account.quota_scans_per_day, coalesce(day.scans, 0) AS account_scans
FROM scan_clocks AS clock
LEFT JOIN managers AS manager ON manager.namespace_id = clock.namespace_id AND manager.id = clock.manager_id
LEFT JOIN namespaces AS namespace ON namespace.id = clock.namespace_id
LEFT JOIN accounts AS account ON account.id = namespace.account_id
LEFT JOIN account_days AS day ON day.account_id = account.id
    AND day.day = (statement_timestamp() AT TIME ZONE 'UTC')::date
WHERE (clock.namespace_id, clock.manager_id) IN (SELECT * FROM unnest($1, $2))
ORDER BY clock.namespace_id, clock.manager_id FOR UPDATE OF clock
