"""The server of ADR-0011's binary protocol.

`listener` reads frames, `service` carries out the requests, `local_partitions` and `remote_partitions` access the
partitions, `least_loaded` places records without a key. `endpoints` creates all of it on demand.
"""
