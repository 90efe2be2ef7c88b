"""Asyncio client for the Kafka protocol. Works with any Kafka cluster.

Replica fetchers, the HTTP server, the command line and applications use it. Layers, from the bottom up:

    frames, connection       one TCP connection to one broker
    metadata, cluster        cluster metadata, one connection per broker, and the only retry loop
    producer, transactional_producer, consumer                              engines for applications
    admin, configs, groups, transactions, partition_moves, quorum           administration
    cluster_status, rates, balance/                                         health, live rates, plans for replicas
    async_clients, sync_clients                                             public API with and without an event loop
"""
