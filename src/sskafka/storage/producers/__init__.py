"""Idempotent and transactional producers of a log: their `state`, its `snapshots`, and its `rebuild`."""
