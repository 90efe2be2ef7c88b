"""The servers of a broker: `kafka` for every Kafka client, `http` and `adr`, and `local` for its own child process.

`samples` has the metrics beside those of requests.
"""
