DROP TABLE purges, leases, replicas;
