"""The result of a controller operation: the records to write, and the response to send once they are committed.

Decisions are pure functions of an image, a request, settings and, if needed, random bytes. They take effect only when
the records are appended and replayed. A decision whose response contains errors may have fewer or no records.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from sskafka.metadata.records import MetadataRecord
from sskafka.model.values import value

Response_co = TypeVar("Response_co", covariant=True)

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns the given number of random bytes: `os.urandom`, or a seeded source in tests."""


@value
class ControllerResult(Generic[Response_co]):
    records: Sequence[MetadataRecord]
    response: Response_co
