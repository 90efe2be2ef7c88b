"""The active controller, on the node that leads the metadata quorum, and the life cycle of brokers.

Start reading at `control_plane`, which constructs a node's part in the quorum, and `node_control`, through which the
rest of the broker uses it. A change of the cluster goes through `link` (in `envelopes` if a client requested it),
`active_controller` and `decisions`, or `client_decisions` for requests of clients. `periodic_tasks` fences brokers and
elects preferred leaders, `broker_watch` notices brokers that die, and `broker_lifecycle` registers this node's broker
and sends its heartbeats.
"""
