"""The door of ADR-0011, and where its records go.

`listener` reads frames, `door` is what can be asked for, `local_partitions` and `remote_partitions` are where it is
done, `least_loaded` decides for records without a key. `services` makes all of it when it is first needed.
"""
