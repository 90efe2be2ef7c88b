"""Records of the metadata log as JSON, in the format of Kafka's tools; with secrets, or without."""

import re
from struct import unpack_from
from typing import Any

from sskafka.metadata.record_codec import decode_record
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    ConfigRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from sskafka.model.settings_table import BROKER_SETTINGS
from sskafka.records.control import ControlType, read_control_type
from sskafka.records.record import Record
from sskafka.wire.codec import decode
from sskafka.wire.message_json import message_json
from sskafka.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from sskafka.wire.schema import Message
from sskafka.wire.varint import decode_uvarint

HIDDEN = "(hidden)"
_CONTROL_MESSAGES: dict[int, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}
CONTROL_NAMES = {number: name for number, (name, _) in _CONTROL_MESSAGES.items()}
_SCRAM_SECRETS = ("salt", "storedKey", "serverKey")


def record_json(value: bytes, *, hides_secrets: bool = False) -> dict[str, Any]:
    """Return type, version and fields. Raise what `decode_record` raises."""
    message = decode_record(value)
    _, position = decode_uvarint(value, 0)
    _, position = decode_uvarint(value, position)
    version, _ = decode_uvarint(value, position)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(message).__name__).upper()
    fields = message_json(message, version)
    return {"type": name, "version": version, "data": _without_secrets(message, fields) if hides_secrets else fields}


def control_json(record: Record) -> tuple[str, dict[str, Any] | None]:
    """Return the name and the fields of a control record; None for one that this software does not know.

    Raise MalformedMessageError or ValueError if it cannot be read."""
    control_type = read_control_type(record.key)
    if control_type not in _CONTROL_MESSAGES:
        return f"UNKNOWN({control_type})", None
    name, message_class = _CONTROL_MESSAGES[control_type]
    value = record.value or b""
    (version,) = unpack_from(">h", value) if len(value) > 1 else (0,)
    return name, message_json(decode(message_class, version, value, allow_trailing=True), version)


def _without_secrets(record: MetadataRecord, fields: dict[str, Any]) -> dict[str, Any]:
    if isinstance(record, UserScramCredentialRecord):
        return {**fields, **dict.fromkeys(_SCRAM_SECRETS, HIDDEN)}
    if isinstance(record, ConfigRecord) and record.value is not None and _may_be_secret(record):
        return {**fields, "value": HIDDEN}
    return fields


def _may_be_secret(record: ConfigRecord) -> bool:
    """Settings of brokers that are not known, such as those with the prefix of a listener, may be secrets, too."""
    if record.resource_type != RESOURCE_BROKER:
        return False
    setting = BROKER_SETTINGS.get(record.name)
    return setting is None or setting.sensitive
