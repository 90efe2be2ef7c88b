"""Client quotas. The error messages are those of Apache Kafka 4.3.1."""

from typing import Any

import pytest
from metadata_clusters import cluster, decided

from sskafka.metadata.client_quotas import alter_client_quotas, describe_client_quotas
from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, OpData, RequestEntryData
from sskafka.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

Entity = list[tuple[str, str | None]]
ALICE: Entity = [("user", "alice")]
EXACT, DEFAULT, ANY = 0, 1, 2
BYTES = "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"


def alter(image: ClusterImage, entity: Entity, *ops: tuple[str, float | None], validate_only: bool = False) -> Any:
    """A value of None removes the quota."""
    entry = RequestEntryData(
        [EntityData(kind, name) for kind, name in entity],
        [OpData(key, value or 0.0, remove=value is None) for key, value in ops],
    )
    return decided(image, alter_client_quotas(image, AlterClientQuotasRequest([entry], validate_only))).entries[0]


def described(image: ClusterImage, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    request = DescribeClientQuotasRequest([ComponentData(*item) for item in components], strict)
    return describe_client_quotas(image, request)


def quotas(image: ClusterImage, *components: tuple[str, int, str | None], strict: bool = False) -> dict[Any, Any]:
    response = described(image, *components, strict=strict)
    assert response.error_code == ErrorCode.NONE
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            item.key: item.value for item in entry.values
        }
        for entry in response.entries
    }


def test_quotas_are_set_changed_and_removed() -> None:
    image = cluster()
    assert alter(image, ALICE, (BYTES, 10.0), ("request_percentage", 12.5)).error_code == 0
    assert alter(image, ALICE, (BYTES, 20.0)).error_message is None
    assert quotas(image) == {(("user", "alice"),): {BYTES: 20.0, "request_percentage": 12.5}}
    assert alter(image, ALICE, (BYTES, None), ("request_percentage", None)).error_code == 0
    assert quotas(image) == {}
    assert alter(image, ALICE, ("no_such_quota", None)).error_code == 0


def test_validate_only_changes_nothing() -> None:
    image = cluster()
    assert alter(image, ALICE, (BYTES, 10.0), validate_only=True).error_code == 0
    assert quotas(image) == {}


@pytest.mark.parametrize(
    ("entity", "key", "value", "text"),
    [
        ([], BYTES, 1.0, "Invalid empty client quota entity"),
        ([("user", "")], BYTES, 1.0, "Empty user not supported"),
        ([("text", "x")], BYTES, 1.0, "Unhandled client quota entity type: text"),
        (
            [("ip", "1.2.3.4"), ("user", "a")],
            BYTES,
            1.0,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ([("ip", "no ip!")], CONNECTIONS, 1.0, "no ip! is not a valid IP or resolvable host."),
        ([("ip", "1.2.3.4")], BYTES, 1.0, "Invalid configuration key producer_byte_rate"),
        (ALICE, CONNECTIONS, 1.0, "Invalid configuration key connection_creation_rate"),
        (ALICE, "nope", 1.0, "Invalid configuration key nope"),
        (ALICE, BYTES, 1.5, "producer_byte_rate cannot be a fractional value."),
        (ALICE, BYTES, -1.0, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, BYTES, float("nan"), "Quota producer_byte_rate must be greater than 0"),
        (ALICE, BYTES, 1e300, "Proposed value for producer_byte_rate is too large for a LONG."),
    ],
)
def test_invalid_quotas_are_rejected(entity: Entity, key: str, value: float, text: str) -> None:
    image = cluster()
    entry = alter(image, entity, (key, value))
    assert (entry.error_code, entry.error_message) == (ErrorCode.INVALID_REQUEST, text)
    assert image.client_quotas == {}


def test_an_entity_may_occur_only_once() -> None:
    image = cluster()
    entry = RequestEntryData([EntityData("user", "alice")], [OpData(BYTES, 1.0)])
    decision = alter_client_quotas(image, AlterClientQuotasRequest([entry, entry]))
    (result,) = decision.response.entries
    assert result.error_message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert list(decision.records) == []
    assert alter(image, ALICE, (BYTES, 1.0), (BYTES, 2.0)).error_code == ErrorCode.INVALID_REQUEST


def test_filters() -> None:
    image = cluster()
    both: Entity = [("user", "alice"), ("client-id", "x")]
    for entity in (ALICE, both, [("user", None)], [("client-id", "x")]):
        assert alter(image, entity, (BYTES, 7.0)).error_code == 0
    assert alter(image, [("ip", None)], (CONNECTIONS, 7.0)).error_code == 0
    alice, default, client = (("user", "alice"),), (("user", None),), (("client-id", "x"),)
    alice_with_x, ip = (("client-id", "x"), ("user", "alice")), (("ip", None),)
    assert set(quotas(image)) == {alice, default, client, alice_with_x, ip}
    assert set(quotas(image, strict=True)) == set()
    assert set(quotas(image, ("user", EXACT, "alice"))) == {alice, alice_with_x}
    assert set(quotas(image, ("user", EXACT, "alice"), strict=True)) == {alice}
    assert set(quotas(image, ("user", DEFAULT, None))) == {default}
    assert set(quotas(image, ("user", ANY, None))) == {alice, default, alice_with_x}
    assert set(quotas(image, ("user", ANY, None), ("client-id", ANY, None))) == {alice_with_x}


@pytest.mark.parametrize(
    ("components", "text"),
    [
        ([("", ANY, None)], "Invalid empty entity type."),
        ([("user", 9, None)], "Unknown match type 9"),
        ([("user", EXACT, None)], "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT, "a")], "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", ANY, "a")], "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", ANY, None)] * 2, "Entity type user cannot appear more than once in the filter."),
        (
            [("ip", ANY, None), ("user", ANY, None)],
            (
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            ),
        ),
    ],
)
def test_invalid_filters_are_rejected(components: list[tuple[str, int, str | None]], text: str) -> None:
    response = described(cluster(), *components)
    assert (response.error_code, response.error_message, response.entries) == (ErrorCode.INVALID_REQUEST, text, None)


def test_an_unknown_type_of_entity_is_not_supported() -> None:
    response = described(cluster(), ("text", EXACT, "x"))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message == "Unsupported entity type text"
