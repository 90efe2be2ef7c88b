"""Records as JSON."""

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import Annotated

from pydantic import BaseModel, Field

from sskafka.client.fetched import ConsumedRecord
from sskafka.servers.http.browsing.pages import size_of
from sskafka.servers.http.browsing.payloads import Schema, header_name, shown_bytes

HEADERS_MAX = 100
_SLICE_S = 0.005


class Payload(BaseModel):
    encoding: Annotated[str, Field(description="null, text, json, avro, protobuf or base64")]
    data: Annotated[str, Field(description="Text, JSON as text, or base64, by `encoding`.")]
    size_bytes: Annotated[int, Field(description="Size of the stored bytes.")]
    is_truncated: bool
    problem: Annotated[str | None, Field(description="Why the schema was not used.")]


class Header(BaseModel):
    name: str
    value: Payload


class Record(BaseModel):
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: Annotated[str, Field(description="CreateTime or LogAppendTime")]
    leader_epoch: int
    size_bytes: Annotated[int, Field(description="Key, value and headers, uncompressed.")]
    key: Payload
    value: Payload
    headers: list[Header]
    headers_left_out: int


class RecordView:
    """How records are shown: by which schemas, and how much of each value."""

    def __init__(self, bytes_max: int, key: Schema | None = None, value: Schema | None = None) -> None:
        self._bytes_max = bytes_max
        self._key = key
        self._value = value

    def show(self, record: ConsumedRecord) -> Record:
        shown = record.headers[:HEADERS_MAX]
        return Record(
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            timestamp_type="LogAppendTime" if record.is_append_time else "CreateTime",
            leader_epoch=record.leader_epoch,
            size_bytes=size_of(record),
            key=self._payload(record.key, self._key),
            value=self._payload(record.value, self._value),
            headers=[Header(name=header_name(name), value=self._payload(value)) for name, value in shown],
            headers_left_out=len(record.headers) - len(shown),
        )

    def _payload(self, data: bytes | None, schema: Schema | None = None) -> Payload:
        return Payload(**shown_bytes(data, self._bytes_max, schema)._asdict())

    async def show_all(self, records: Iterable[ConsumedRecord]) -> list[Record]:
        """Show records in slices, so that other requests are answered in between."""
        shown = []
        slice_ends_s = monotonic() + _SLICE_S
        for record in records:
            shown.append(self.show(record))
            if monotonic() >= slice_ends_s:
                await asyncio.sleep(0)
                slice_ends_s = monotonic() + _SLICE_S
        return shown
