"""The commands of `sskafka broker`."""
