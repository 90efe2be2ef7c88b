"""Client quotas: AlterClientQuotas writes them to the metadata log, DescribeClientQuotas reads them from the image.

quota_limits.py decides which quota applies to a client. An entity is a user, a client id, a combination of both, or an
IP address. The name null stands for all entities of that type that have no quota of their own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from re import compile as regex
from typing import NamedTuple

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.image import ClusterImage, QuotaEntity
from sskafka.metadata.records import ClientQuotaRecord, EntityData
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages import alter_client_quotas as altering
from sskafka.wire.messages import describe_client_quotas as describing

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY_SPECIFIED = 0, 1, 2
LONG_MAX = 2**63 - 1
_FRACTION_MAX = 1e-6  # rounding error that a whole number may have as a double


class QuotaKey(NamedTuple):
    is_whole: bool


_BYTE_RATES = {"producer_byte_rate": QuotaKey(True), "consumer_byte_rate": QuotaKey(True)}
_RATES = {"request_percentage": QuotaKey(False), "controller_mutation_rate": QuotaKey(False)}
CLIENT_KEYS: Mapping[str, QuotaKey] = _BYTE_RATES | _RATES
IP_KEYS: Mapping[str, QuotaKey] = {"connection_creation_rate": QuotaKey(True)}
_HOST_NAME = regex(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


# --- AlterClientQuotas ------------------------------------------------------------------------------


def alter_client_quotas(
    image: ClusterImage, request: altering.AlterClientQuotasRequest
) -> ControllerResult[altering.AlterClientQuotasResponse]:
    entities = [_entity(entry.entity) for entry in request.entries]
    repetitions = Counter(entities)
    records: list[ClientQuotaRecord] = []
    results: dict[QuotaEntity, altering.ResponseEntryData] = {}
    for entity, entry in zip(entities, request.entries, strict=True):
        code, text = ErrorCode.NONE, None
        try:
            if repetitions[entity] > 1 or _repeats_key(entry.ops):
                raise _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{_entity_text(entity)}}})")
            records += _changes(image, entity, entry.ops)
        except KafkaError as error:
            code, text = error.code, error.message
        named = [altering.EntityData(kind, name) for kind, name in entity]
        results[entity] = altering.ResponseEntryData(code, text, named)
    return ControllerResult(
        () if request.validate_only else records, altering.AlterClientQuotasResponse(entries=list(results.values()))
    )


def _entity(parts: Iterable[altering.EntityData]) -> QuotaEntity:
    return tuple(sorted({part.entity_type: part.entity_name for part in parts}.items()))


def _entity_text(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind}={name}" for kind, name in entity)


def _repeats_key(ops: list[altering.OpData]) -> bool:
    return len({op.key for op in ops}) < len(ops)


def _changes(image: ClusterImage, entity: QuotaEntity, ops: list[altering.OpData]) -> list[ClientQuotaRecord]:
    keys = _keys_of(entity)
    known = image.client_quotas.get(entity, {})
    records = []
    for op in ops:
        if op.remove:
            if op.key in known:
                records.append(ClientQuotaRecord(_named(entity), op.key, remove=True))
        else:
            _check_value(keys, op)
            if known.get(op.key) != op.value:
                records.append(ClientQuotaRecord(_named(entity), op.key, op.value))
    return records


def _named(entity: QuotaEntity) -> list[EntityData]:
    return [EntityData(kind, name) for kind, name in entity]


def _keys_of(entity: QuotaEntity) -> Mapping[str, QuotaKey]:
    """Return the quota keys that the entity may have."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in {USER, CLIENT_ID, IP}:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    kinds = dict(entity)
    if IP not in kinds:
        return CLIENT_KEYS
    if len(kinds) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = kinds[IP]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return IP_KEYS


def _is_address(text: str) -> bool:
    """Return whether `text` is an IP address or has the form of a host name; host names are not resolved."""
    try:
        ip_address(text)
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None
    return True


def _check_value(keys: Mapping[str, QuotaKey], op: altering.OpData) -> None:
    key = keys.get(op.key)
    if key is None:
        raise _invalid(f"Invalid configuration key {op.key}")
    if not op.value > 0:  # also rejects NaN
        raise _invalid(f"Quota {op.key} must be greater than 0")
    if key.is_whole:
        if op.value > LONG_MAX:
            raise _invalid(f"Proposed value for {op.key} is too large for a LONG.")
        if abs(op.value - round(op.value)) > _FRACTION_MAX:
            raise _invalid(f"{op.key} cannot be a fractional value.")


# --- DescribeClientQuotas ---------------------------------------------------------------------------


def describe_client_quotas(
    image: ClusterImage, request: describing.DescribeClientQuotasRequest
) -> describing.DescribeClientQuotasResponse:
    try:
        _check_filter(request.components)
    except KafkaError as error:
        return describing.DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entries = [
        _described(entity, quotas)
        for entity, quotas in image.client_quotas.items()
        if _matches(dict(entity), request.components, request.strict)
    ]
    return describing.DescribeClientQuotasResponse(entries=entries)


def _check_filter(components: list[describing.ComponentData]) -> None:
    kinds: set[str] = set()
    for component in components:
        _check_component(component)
        if component.entity_type in kinds:
            raise _invalid(f"Entity type {component.entity_type} cannot appear more than once in the filter.")
        kinds.add(component.entity_type)
    if IP in kinds and len(kinds) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )


def _check_component(component: describing.ComponentData) -> None:
    kind, has_name = component.entity_type, component.match is not None
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if kind not in {USER, CLIENT_ID, IP}:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    match component.match_type:
        case 0 if not has_name:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        case 1 if has_name:
            raise _invalid("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
        case 2 if has_name:
            raise _invalid("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
        case 0 | 1 | 2:
            pass
        case unknown:
            raise _invalid(f"Unknown match type {unknown}")


def _matches(entity: dict[str, str | None], components: list[describing.ComponentData], strict: bool) -> bool:
    """Return whether the entity matches; with `strict` it must not have types that the filter does not name."""
    if strict and len(entity) != len(components):
        return False
    for component in components:
        if component.entity_type not in entity:
            return False
        name = entity[component.entity_type]
        if component.match_type == EXACT and name != component.match:
            return False
        if component.match_type == DEFAULT and name is not None:
            return False
    return True


def _described(entity: QuotaEntity, quotas: Mapping[str, float]) -> describing.EntryData:
    return describing.EntryData(
        [describing.EntityData(kind, name) for kind, name in entity],
        [describing.ValueData(key, value) for key, value in quotas.items()],
    )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
