"""The server of ADR-0011's binary protocol, and where its records go.

`listener` reads frames, `service` does what they ask for, `local_partitions` and `remote_partitions` are where it is
done, `least_loaded` decides for records without a key. `endpoints` creates all of it on demand.
"""
