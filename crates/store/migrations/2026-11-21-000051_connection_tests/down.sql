DROP TABLE connection_tests;
