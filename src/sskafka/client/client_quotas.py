"""Administration of client quotas: limits of users, client ids and IP addresses.

A `QuotaEntity` names what a quota limits, sorted by type: `(("client-id", "app"), ("user", "alice"))`. The name None
stands for the default: all entities of that type that have no quota of their own.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import broker_error, raise_for
from sskafka.metadata.image import QuotaEntity
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from sskafka.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT, _DEFAULT = 0, 1


class EntityQuotas(NamedTuple):
    entity: QuotaEntity
    limits: dict[str, float]


async def describe_quotas(cluster: Cluster, entity: QuotaEntity = ()) -> list[EntityQuotas]:
    """Return the quotas whose entity has all the named parts, sorted; all quotas if no part is named."""
    components = [ComponentData(kind, _DEFAULT if name is None else _EXACT, name) for kind, name in entity]
    request = DescribeClientQuotasRequest(components)

    async def attempt() -> DescribeClientQuotasResponse:
        response = await (await cluster.any_connection()).request(request, DescribeClientQuotasResponse)
        raise_for(response.error_code, response.error_message)
        return response

    found = [
        EntityQuotas(
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            {limit.key: limit.value for limit in sorted(entry.values, key=lambda limit: limit.key)},
        )
        for entry in (await cluster.retrying(attempt)).entries or ()
    ]
    return sorted(found, key=lambda one: [(kind, name or "") for kind, name in one.entity])


async def alter_quotas(
    cluster: Cluster, entity: QuotaEntity, limits: Mapping[str, float | None], *, validate_only: bool = False
) -> None:
    """Set the limits of an entity; None removes a limit. Raise KafkaError if the controller refuses them."""
    ops = [OpData(key, limit or 0.0, remove=limit is None) for key, limit in limits.items()]
    entry = RequestEntryData([EntityData(kind, name) for kind, name in entity], ops)
    request = AlterClientQuotasRequest([entry], validate_only)

    async def attempt() -> None:
        response = await (await cluster.controller_connection()).request(request, AlterClientQuotasResponse)
        for result in response.entries:
            if result.error_code == ErrorCode.NOT_CONTROLLER:
                await cluster.refresh()
            if result.error_code != ErrorCode.NONE:
                raise broker_error(result.error_code, result.error_message)

    await cluster.retrying(attempt)
