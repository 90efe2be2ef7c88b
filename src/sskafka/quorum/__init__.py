"""A node's replica of the metadata log: disk and network around the pure package raft.

Start reading at `driver`, which does what the Raft core asks for, on the `metadata_log` and over the `peer_network`.
`committed_metadata` replays what is committed, `metadata_feed` hands it to the data loop, `snapshot_writer` writes
snapshots. All of this runs on the loop of runtime/control_thread.py. The controller on top is the package controller.
"""
