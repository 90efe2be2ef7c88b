"""Construct a node of the cluster. This is the only package that constructs the parts of other packages.

node.py             start and stop of a node: the order in which its parts start, and stop in reverse
context.py          settings, clock, threads, tasks and clean-ups, which every part receives
sockets.py          ports, which are bound before anything else, and the advertised addresses
kafka_listeners.py  the Kafka listeners, which can be opened and closed while the broker runs
listener_security.py  their certificates and SASL mechanisms
security_changes.py what is checked before certificates and logins are changed while the broker runs
api_handlers.py     the handlers of the Kafka APIs
services.py         replicas, coordinators and background work of a broker
coordinators.py     the group and transaction coordinators
local_security.py   certificates, users and ACLs of brokers on this machine
other_servers.py    HTTP and ADR-0011
configured_topics.py     the topics of `topics.file`
quorum_discovery.py the voters, asked from controller.quorum.bootstrap.servers
on_demand.py        parts that are imported when they are first used
"""

from sskafka.broker.node import Broker

__all__ = ["Broker"]
