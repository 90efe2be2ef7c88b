"""`sskafka start --brokers-per-host N`: one broker process for each core of a machine.

`count` decides how many, `members` the settings of each, `directories` where their data is, `process` runs one of them
and `supervisor` all of them.
"""
