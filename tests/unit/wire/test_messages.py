"""Encode and decode every message in every version, including those that no other available implementation has."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

import pytest

from sskafka.wire import messages
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.messages.group_records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue

MODULES = sorted(module.name for module in iter_modules(messages.__path__))


def message_classes(module_name: str) -> Iterator[type[Any]]:
    module = import_module(f"sskafka.wire.messages.{module_name}")
    return (value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "SCHEMA"))


@pytest.mark.parametrize("module_name", MODULES)
def test_defaults_round_trip_and_noise_raises_only_malformed_message_error(module_name: str) -> None:
    classes = list(message_classes(module_name))
    assert classes
    random = Random(module_name)
    for cls in classes:
        first, last = cls.SCHEMA.versions
        for version in range(first, last + 1):
            assert decode(cls, version, encode(cls(), version)) == cls()
            for _ in range(20):
                with suppress(MalformedMessageError):
                    decode(cls, version, random.randbytes(random.randrange(80)))


@pytest.mark.parametrize(
    ("metadata", "tagged_section"),
    [
        (ClassicMemberMetadata(), "00"),
        (None, "01 00 01 00"),
        (ClassicMemberMetadata(session_timeout_ms=5), "01 00 07 01 00000005 01 00"),
    ],
)
def test_a_nullable_tagged_struct_is_encoded_as_in_kafka(
    metadata: ClassicMemberMetadata | None, tagged_section: str
) -> None:
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=metadata)
    encoded = encode(value, 0)
    assert encoded == bytes.fromhex("010101010101 ffffffff 01" + tagged_section)
    assert decode(ConsumerGroupMemberMetadataValue, 0, encoded) == value


def test_dataclasses_have_no_generated_docstrings() -> None:
    """Generating docstrings from signatures would take 5% of the start time of a broker."""
    assert ClassicMemberMetadata.__doc__ == "ClassicMemberMetadata"
