DELETE FROM account_days WHERE day < current_date - 31
