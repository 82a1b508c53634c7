WITH answers AS (
    DELETE FROM account_mail_addresses WHERE refuse_time IS NULL AND ask_time < clock_timestamp() - interval '30 days'
)
DELETE FROM mail_addresses WHERE ask_time < clock_timestamp() - interval '2 days'
