DROP TABLE delivery_attempts, deliveries;
