"""The topics that the stages use: random names, ids and messages, reproducible by seed.

Every stage that writes has its own topics, so that stages can share one process of the program.
"""

from random import Random

from sskafka.challenge.log_directory import PreparedTopic, prepared_batches

_WORDS = ("bar", "baz", "foo", "pax", "paz", "qux", "quz", "saz", "apple", "grape", "mango", "raspberry", "blueberry")
_SENTENCES = (
    "Hello World!",
    "Hello Earth!",
    "Hello CodeCrafters!",
    "Hello Kafka!",
    "Hello Universe!",
    "Hello Reader!",
)


class ChallengeTopics:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        names = [f"{word}-{self.random.randrange(100, 1000)}" for word in _WORDS]
        self.random.shuffle(names)
        self._names = iter(names)
        self.lone = self._topic(partitions=1)
        self.split = self._topic(partitions=self.random.randint(2, 4))
        self.third = self._topic(partitions=1)
        self.empty = self._topic(partitions=1)
        self.single = self._filled(messages=1)
        self.many = self._filled(messages=self.random.randint(2, 5))
        self.answered = self._topic(partitions=1)
        self.written = self._topic(partitions=1)
        self.written_many = self._topic(partitions=1)
        self.written_split = self._topic(partitions=self.random.randint(2, 3))
        self.written_first = self._topic(partitions=2)
        self.written_second = self._topic(partitions=1)
        self.unknown_name = f"unknown-{next(self._names)}"
        self.unknown_id = self._new_id()

    @property
    def all(self) -> list[PreparedTopic]:
        return [value for value in vars(self).values() if isinstance(value, PreparedTopic)]

    def correlation_id(self) -> int:
        return self.random.randrange(1, 2**31)

    def sentences(self, count: int) -> list[bytes]:
        return [self.random.choice(_SENTENCES).encode() for _ in range(count)]

    def _topic(self, partitions: int) -> PreparedTopic:
        return PreparedTopic(next(self._names), self._new_id(), ((),) * partitions)

    def _filled(self, messages: int) -> PreparedTopic:
        return PreparedTopic(next(self._names), self._new_id(), (prepared_batches(self.sentences(messages)),))

    def _new_id(self) -> bytes:
        """A version 4 UUID."""
        raw = bytearray(self.random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
