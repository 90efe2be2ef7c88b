"""Pass committed metadata from the control loop to the data loop, in the order of the log.

Answers of the controller take the same path after it: a caller that learns of a new topic finds it in `image`.
"""

import asyncio
from collections.abc import Callable

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.quorum.committed_metadata import Listener


class MetadataFeed:
    def __init__(self, data_loop: asyncio.AbstractEventLoop, on_failure: Callable[[BaseException], None]) -> None:
        self.image = ClusterImage()
        self._loop = data_loop
        self._on_failure = on_failure
        self._listeners: list[Listener] = []
        self._changed = asyncio.Event()

    def subscribe(self, listener: Listener) -> None:
        """Add a listener. Called on the data loop, before anything is published."""
        self._listeners.append(listener)

    def publish(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Pass image and delta to the data loop. Called on the control loop."""
        self._loop.call_soon_threadsafe(self._take, delta, image)

    def _take(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.image = image
        try:
            for listener in self._listeners:
                listener(delta, image)
        except Exception as error:  # a broker that cannot apply its metadata must not continue
            self._on_failure(error)
        self._changed.set()
        self._changed.clear()

    async def until(self, condition: Callable[[ClusterImage], bool]) -> None:
        """Wait on the data loop until the image meets the condition."""
        while not condition(self.image):
            await self._changed.wait()
