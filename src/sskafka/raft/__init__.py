"""KRaft, the consensus on the metadata log, as a pure state machine: no I/O, and time and randomness are arguments.

Start with `roles` (the roles of a node and their transitions), then read `ready` (what the state machine asks of its
driver), then `node` (the events). Replication is pull-based: followers send Fetch, and the fetch offset tells the
leader what they have (KIP-595). A pre-vote precedes every election (KIP-996). Snapshots replace the start of the log
(KIP-630).
"""
