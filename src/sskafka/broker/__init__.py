"""A node of the cluster, put together: the only place that wires parts.

node.py          its life: what is started in which order, and stopped in the opposite one
context.py       what every part is given: settings, clock, threads, tasks, and what a stop undoes
sockets.py       ports, bound before anything else, and the addresses that others are told
api_handlers.py  the handlers of the Kafka APIs
services.py      what a broker has beside its part in the quorum: replicas, coordinators, work in the background
other_servers.py HTTP and ADR-0011
first_topics.py  what `topics.file` asks for
"""

from sskafka.broker.node import Broker

__all__ = ["Broker"]
