"""What a controller operation comes to: the records to write, and the answer to give once they are durable.

Decisions are pure. They see an image, a request, settings and, where needed, random bytes; nothing has happened until
the records are appended and replayed, and a decision with an error in its response may simply have fewer records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from sskafka.metadata.records import MetadataRecord

Response_co = TypeVar("Response_co", covariant=True)

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Given a count, that many random bytes: `os.urandom`, or a seeded source in tests."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[Response_co]):
    records: Sequence[MetadataRecord]
    response: Response_co
