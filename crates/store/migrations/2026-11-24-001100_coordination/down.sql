DROP TABLE purges, outbox, replicas;
