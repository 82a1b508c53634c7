DELETE FROM idempotency_days WHERE day < current_date - 1
