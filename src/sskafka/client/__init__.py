"""The asyncio wire client, for any Kafka cluster: used by followers, the HTTP door, the command line and users.

From the bottom up: `frames`, `connection` (one broker), `metadata` and `cluster` (all of them, and the one retry loop);
on these the engines `producer`, `transactional_producer` and `consumer`, and what administrators ask: `admin`,
`configs`, `groups`, `transactions`, `partition_moves`, `quorum`. Users have `async_producer`, `async_consumer` and,
without an event loop, `sync_clients`.
"""
