"""The active controller, and the brokers as it sees them: on the node that leads the metadata quorum.

Start reading at `control_plane`, which puts a node's part in the quorum together, and `node_control`, through which the
rest of the broker reaches it. A change of the cluster goes through `link` (in `envelopes` when a client asked for it),
`active_controller` and `decisions`. `duties` is what the controller does by itself, `broker_watch` notices
brokers that die, and `broker_lifecycle` registers this node's broker and sends its heartbeats.
"""
