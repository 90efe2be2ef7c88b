"""A node's replica of the metadata log: disk and network around the pure package raft.

Start reading at `driver`, which carries out what the Raft core requests, on the `metadata_log` and the `peer_network`.
`committed_metadata` replays committed records, `metadata_feed` passes the image to the data loop, and `snapshot_writer`
writes snapshots. All of this runs on the event loop of runtime/control_thread.py. The package controller builds on it.
"""
