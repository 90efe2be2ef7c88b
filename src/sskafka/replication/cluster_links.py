"""The links of a broker's replicas to the rest of the cluster, over a real or a simulated network."""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.client.broker_link import CallLater, Link, LinkTo


class ClusterLinks(NamedTuple):
    link_to: LinkTo[Link]
    """Returns a link to another broker for the caller alone."""
    controller: Link
    """The link to the active controller, on whichever node it is."""
    call_later: CallLater
    broker_epoch: Callable[[], int]
    """The broker epoch of this broker's registration, -1 before it is registered."""
