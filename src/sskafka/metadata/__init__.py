"""Cluster metadata, and the controller's decisions as pure functions from an image to records.

`records` are the changes, `image` (with `partitions`) the state they add up to, and `delta` the changes of a sequence
of records. A `controller_result` has records and a response. Each file of decisions is named after its subject:
`topics`, `placement`, `brokers`, `alter_partition`, `elections`, `reassignments`, `config_changes`,
`feature_updates` and so on.
"""
