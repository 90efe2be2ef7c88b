"""The cluster as records describe it, and the controller's decisions, as pure functions from an image to records.

`records` are the changes, `image` and `partition_image` what they add up to, `delta` what some of them changed. A
`decision` is records and an answer. Decisions stand in files named after what is decided: `topics`, `placement`,
`broker_lifecycle`, `alter_partition`, `elections`, `reassignments`, `config_changes`, `feature_updates` and so on.
"""
