-- The outbox, which services wrote their events to before they published them after the commit (ADR 0064). What is left in
-- it is work that sweeps have found long ago.
--
-- Contracts: since 0.2.0 no service reads or writes it
DROP TABLE outbox;
