"""Encoding of metadata records: the value of a record in a batch; its key is null.

uvarint  frame version   1
uvarint  record type     the schema's key
uvarint  record version
         the message
"""

from sskafka.metadata.features import (
    CORDONED_DIRECTORIES,
    DIRECTORY_ASSIGNMENT,
    ELIGIBLE_LEADER_REPLICAS,
    IN_CONTROLLED_SHUTDOWN,
    LATEST_METADATA_VERSION,
    ZK_MIGRATION,
)
from sskafka.metadata.records import (
    RECORD_CLASSES,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from sskafka.model.buffers import Buffer
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.varint import decode_uvarint, encode_uvarint

FRAME_VERSION = 1
_CLASS_BY_KEY = {cls.SCHEMA.key: cls for cls in RECORD_CLASSES}

_VERSION_SINCE: dict[type[MetadataRecord], tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: (
        (CORDONED_DIRECTORIES, 4),
        (DIRECTORY_ASSIGNMENT, 3),
        (ZK_MIGRATION, 2),
        (IN_CONTROLLED_SHUTDOWN, 1),
    ),
    BrokerRegistrationChangeRecord: ((CORDONED_DIRECTORIES, 3), (DIRECTORY_ASSIGNMENT, 2), (IN_CONTROLLED_SHUTDOWN, 1)),
    PartitionRecord: ((ELIGIBLE_LEADER_REPLICAS, 2), (DIRECTORY_ASSIGNMENT, 1)),
    PartitionChangeRecord: ((ELIGIBLE_LEADER_REPLICAS, 2), (DIRECTORY_ASSIGNMENT, 1)),
}
"""Pairs (metadata.version, record version), newest first: the record version written from that metadata.version on.

Other record types have only version 0."""


class UnknownRecordError(Exception):
    """A record type or version that this software does not know, written by newer software."""


def version_for(cls: type[MetadataRecord], metadata_version: int) -> int:
    """Return the version of a record type that every node of a cluster at `metadata_version` can read."""
    for since, version in _VERSION_SINCE.get(cls, ()):
        if metadata_version >= since:
            return version
    return 0


def encode_record(record: MetadataRecord, metadata_version: int = LATEST_METADATA_VERSION) -> bytes:
    cls = type(record)
    version = version_for(cls, metadata_version)
    assert cls.SCHEMA.key is not None, f"{cls.__name__} is no metadata record"
    frame = encode_uvarint(FRAME_VERSION) + encode_uvarint(cls.SCHEMA.key) + encode_uvarint(version)
    return frame + encode(record, version)


def decode_record(value: Buffer) -> MetadataRecord:
    """Decode a record; raise UnknownRecordError if it is too new, MalformedMessageError if it is invalid."""
    try:
        frame_version, position = decode_uvarint(value, 0)
        key, position = decode_uvarint(value, position)
        version, position = decode_uvarint(value, position)
    except IndexError:
        raise MalformedMessageError("the metadata record ends within its frame") from None
    if frame_version != FRAME_VERSION:
        raise UnknownRecordError(f"metadata record has frame version {frame_version}; supported is {FRAME_VERSION}")
    cls = _CLASS_BY_KEY.get(key)
    if cls is None or version not in cls.SCHEMA.versions:
        raise UnknownRecordError(f"metadata record of type {key} version {version}")
    return decode(cls, version, value, position)
