DROP TABLE account_mail_addresses;
