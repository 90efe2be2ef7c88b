"""Idempotent and transactional producers of a log: their `state`, its `snapshots`, and how it is rebuilt."""
