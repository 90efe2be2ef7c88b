"""Consensus on the metadata log (KRaft) as a pure state machine: no I/O, no clock, no randomness of its own.

Start reading at `roles` (what a node can be and how it changes), then `ready` (what the machine asks of its driver),
then `node` (the events that go in). Replication is by pull: followers send Fetch, and the offset they ask for tells the
leader how far they have got (KIP-595). A pre-vote comes before every election (KIP-996), snapshots replace the log's
beginning (KIP-630).
"""
