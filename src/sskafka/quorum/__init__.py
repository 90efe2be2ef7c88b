"""A node's part in the metadata quorum: disk, network, time and threads around the pure packages raft and metadata.

Start reading at `control_plane` (all of it, put together) and `driver` (carries out what Raft asks for). A change of
the cluster goes through `controller_link`, `active_controller` and `decisions`, and comes back to every node by
`committed_metadata` and `metadata_feed`. All of this runs on the loop of runtime/control_thread.py; `node_control` is
how the rest of the broker reaches it, `broker_lifecycle` how the broker stays in the cluster.
"""
