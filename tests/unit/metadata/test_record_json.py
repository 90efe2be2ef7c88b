"""Metadata records as JSON: secrets are shown in files, and hidden from clients of the HTTP server."""

import json

import pytest

from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.record_json import HIDDEN, record_json
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    ConfigRecord,
    MetadataRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

SECRETS = [
    UserScramCredentialRecord("ann", 1, b"secret", b"secret", b"secret", 4096),
    ConfigRecord(RESOURCE_BROKER, "1", "ssl.keystore.password", "secret"),
    ConfigRecord(RESOURCE_BROKER, "", "listener.name.sasl_ssl.plain.sasl.jaas.config", "secret"),
]


@pytest.mark.parametrize("record", SECRETS)
def test_secrets_are_hidden(record: MetadataRecord) -> None:
    shown = json.dumps(record_json(encode_record(record), hides_secrets=True))
    assert HIDDEN in shown
    assert "secret" not in shown
    assert "c2VjcmV0" not in shown, "nor in base64"
    assert HIDDEN not in json.dumps(record_json(encode_record(record)))


def test_everything_else_is_shown() -> None:
    topic = record_json(encode_record(TopicRecord("orders", bytes(16))), hides_secrets=True)
    assert (topic["type"], topic["version"], topic["data"]["name"]) == ("TOPIC_RECORD", 0, "orders")
    setting = ConfigRecord(RESOURCE_TOPIC, "orders", "retention.ms", "1000")
    assert record_json(encode_record(setting), hides_secrets=True)["data"]["value"] == "1000"
    removed = ConfigRecord(RESOURCE_BROKER, "1", "ssl.keystore.password", None)
    assert record_json(encode_record(removed), hides_secrets=True)["data"]["value"] is None
