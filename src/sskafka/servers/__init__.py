"""The doors of a broker: `kafka` for every Kafka client, `http` and `adr` beside it, `local` to its own child process.

`event_loop` is what they run on, `samples` what a broker counts beside its requests.
"""
