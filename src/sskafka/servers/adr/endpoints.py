"""The ADR-0011 service of a broker, created on demand: most brokers never need it.

Every broker answers the brokers that forward ADR-0011 requests to it, whether it has an adr.listener itself or not, and
its own HTTP process over the private socket:

    adr_produce    {"topic", "key", "data"}                             -> {"partition", "offset"}
    adr_consume    {"topic", "partition", "offset", "batch_size"}       -> {"partition", "next_offset", "messages"}
    adr_flush      {}                                                   -> {}

In these messages `data` is base64; an error is {"kind", "error"}.
"""

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.adr.caller import http_caller
from sskafka.servers.adr.errors import AdrServiceError, NotAppliedError
from sskafka.servers.kafka.request import Request
from sskafka.wire.adr import Consume, Produce
from sskafka.wire.messages.flush_logs import FlushLogsResponse
from sskafka.wire.messages.place_record import PlaceRecordResponse
from sskafka.wire.messages.record_counts import PartitionRecordCount, RecordCountsResponse

if TYPE_CHECKING:
    from sskafka.servers.adr.service import AdrService
    from sskafka.servers.local.server import Answer


class AdrEndpoints:
    """`make_service` imports what the service needs, and constructs it."""

    def __init__(self, make_service: "Callable[[], AdrService]") -> None:
        self._make_service = make_service

    @cached_property
    def service(self) -> "AdrService":
        return self._make_service()

    async def close(self) -> None:
        if "service" in self.__dict__:
            await self.service.close()

    # -- requests of other brokers

    async def record_counts(self, message: Any, request: Request) -> Any:
        counts = await self.service.own_record_counts(message.topic, message.partitions)
        return RecordCountsResponse(
            partitions=[
                PartitionRecordCount(index, ErrorCode.NONE, counts[index])
                if index in counts
                else PartitionRecordCount(index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
                for index in message.partitions
            ]
        )

    async def place_record(self, message: Any, request: Request) -> Any:
        try:
            placed = await self.service.place_here(message.topic, message.data)
        except NotAppliedError as error:
            return PlaceRecordResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(error))
        except Exception as error:
            return PlaceRecordResponse(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return PlaceRecordResponse(partition_index=placed.partition, offset=placed.offset)

    async def flush_logs(self, message: Any, request: Request) -> Any:
        try:
            await self.service.flush_here()
        except Exception as error:
            return FlushLogsResponse(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return FlushLogsResponse()

    # -- requests of the HTTP process

    def answers(self) -> "dict[str, Answer]":
        return {
            "adr_produce": self._refusing(self.http_produce),
            "adr_consume": self._refusing(self.http_consume),
            "adr_flush": self._refusing(self.http_flush),
        }

    async def http_produce(self, details: Mapping[str, Any]) -> dict[str, Any]:
        key = details["key"]
        data = b64decode(details["data"])
        wanted = Produce(details["topic"], key.encode() if key else None, data)
        placed = await self.service.produce(wanted, http_caller(details, "Produce"))
        return {"partition": placed.partition, "offset": placed.offset}

    async def http_consume(self, details: Mapping[str, Any]) -> dict[str, Any]:
        topic, partition, offset = details["topic"], details["partition"], details["offset"]
        if partition is None:
            partition = await self.service.fullest_partition(topic, offset, http_caller(details, "Consume"))
        wanted = Consume(topic, partition, offset, details["batch_size"])
        found = await self.service.consume(wanted, http_caller(details, "Consume"))
        messages = [{"offset": at, "data": b64encode(data).decode()} for at, data in found.messages]
        return {"partition": partition, "next_offset": found.next_offset, "messages": messages}

    async def http_flush(self, details: Mapping[str, Any]) -> dict[str, Any]:
        await self.service.flush(http_caller(details, "Flush"))
        return {}

    def _refusing(self, work: "Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]") -> "Answer":
        async def answer(details: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return await work(details)
            except AdrServiceError as error:
                return {"kind": error.kind, "error": str(error)}
            except KafkaError as error:
                return {"kind": "unavailable" if error.retriable else "failed", "error": str(error)}

        return answer
