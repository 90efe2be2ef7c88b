"""Brokers: their registrations, heartbeats and sessions, and whether they are alive."""
