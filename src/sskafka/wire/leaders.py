"""Tagged fields that tell a client the current leader (KIP-951), so that it need not refresh its metadata.

in a partition    tag, size | leader id int32 | leader epoch int32 | no tags
in a response     tag 0, size | endpoints: node id int32 | host | port int32 | rack or null | no tags
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from sskafka.wire.fields import NO_TAGS, compact_string_field
from sskafka.wire.varint import encode_uvarint

_pack_leader = Struct(">BBiiB").pack
_pack_int32 = Struct(">i").pack


class CurrentLeader(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


def current_leader_field(tag: int, leader: CurrentLeader) -> bytes:
    return _pack_leader(tag, 9, *leader, 0)


def node_endpoints_section(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """Return the tagged section at the end of a response."""
    if not endpoints:
        return NO_TAGS
    array = encode_uvarint(len(endpoints) + 1) + b"".join(map(_endpoint, endpoints))
    return b"\x01\x00" + encode_uvarint(len(array)) + array


def _endpoint(endpoint: NodeEndpoint) -> bytes:
    node_id, host, port, rack = endpoint
    return b"".join(
        (_pack_int32(node_id), compact_string_field(host), _pack_int32(port), compact_string_field(rack), NO_TAGS)
    )
