DELETE FROM mail_addresses WHERE ask_time < clock_timestamp() - interval '2 days'
