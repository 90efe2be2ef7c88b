"""The registration of this broker at the controller, its heartbeats, and its controlled shutdown.

    register -> fenced -> it has replayed its own registration -> unfenced -> ... -> controlled shutdown -> gone

Runs on the control loop. A broker whose data loop is stuck sends no heartbeats, so that the controller fences it and
elects other leaders.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from sskafka.controller.link import ControllerLink
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.runtime.control_thread import LoopLiveness
from sskafka.storage.errors import LogDirectoryError
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest

_log = logging.getLogger(__name__)

NOT_REGISTERED = -1
RETRY_PAUSE_S = 0.1
SHUTDOWN_PAUSE_S = 0.1
SHUTDOWN_TIMEOUT_MS = 10_000
SHUTDOWN_ANSWER_TIMEOUT_MS = 1500


class BrokerLifecycle:
    def __init__(
        self,
        link: ControllerLink,
        request: BrokerRegistrationRequest,
        settings: Settings,
        clock: Clock,
        data_loop: LoopLiveness,
        offline_directories: Callable[[], Sequence[Uuid]],
        on_failure: Callable[[BaseException], None],
        cordoned_directories: Callable[[], Sequence[Uuid]] = tuple,
    ) -> None:
        """The ids of the broker's log directories that have failed, and of those that are cordoned."""
        self.broker_epoch = NOT_REGISTERED
        self._link = link
        self._request = request
        self._settings = settings
        self._clock = clock
        self._data_loop = data_loop
        self._offline_directories = offline_directories
        self._cordoned_directories = cordoned_directories
        self._on_failure = on_failure
        self._reported_offline: set[Uuid] = set()
        self._reported_cordoned: list[Uuid] = []
        self._unreported_since_ms: float | None = None
        self._next_offset = 0
        self._is_wanted = asyncio.Event()
        self._unfenced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def broker_id(self) -> int:
        return self._request.broker_id

    async def start(self) -> None:
        """Return when this broker is registered and unfenced. Raises KafkaError if it is rejected."""
        self.broker_epoch = await self._register()
        _log.info("broker %d is registered with epoch %d", self.broker_id, self.broker_epoch)
        self._task = asyncio.get_running_loop().create_task(self._keep_alive())
        self._task.add_done_callback(self._ended)
        await self._unfenced.wait()

    def applied(self, next_offset: int) -> None:
        """Note that this broker has applied the metadata before `next_offset`."""
        self._next_offset = next_offset
        if not self._unfenced.is_set() or list(self._cordoned_directories()) != self._reported_cordoned:
            self._is_wanted.set()  # new topics are placed on this broker until the controller knows of the cordon

    def controller_changed(self) -> None:
        """Report to the new controller at once: brokers that it has not heard from are fenced soon."""
        self._is_wanted.set()

    # ---- registration

    async def _register(self) -> int:
        timeout_ms = self._settings["initial.broker.registration.timeout.ms"]
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        duplicate_until_ms: float | None = None
        while True:
            left_ms = max(1, int(deadline_ms - self._clock.monotonic_ms()))
            response = await self._link.ask(self._request, left_ms)
            error = ErrorCode(response.error_code)
            if error is ErrorCode.NONE:
                epoch: int = response.broker_epoch
                return epoch
            if error is not ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                raise self._refusal(error)
            if duplicate_until_ms is None:
                duplicate_until_ms = self._clock.monotonic_ms() + self._session_wait_ms
                _log.warning("%s; waiting for its session to end", self._duplicate_text)
            if self._clock.monotonic_ms() > duplicate_until_ms:
                raise KafkaError(error, f"{self._duplicate_text}, and it is alive: set another node.id")
            await asyncio.sleep(RETRY_PAUSE_S)

    @property
    def _session_wait_ms(self) -> int:
        """How long to wait until the session of a process that died has expired."""
        timeout_ms = self._settings["broker.session.timeout.ms"]
        return timeout_ms * 3 // 2 + 1000

    @property
    def _duplicate_text(self) -> str:
        return f"another broker with the id {self.broker_id} is registered"

    def _refusal(self, error: ErrorCode) -> KafkaError:
        texts = {
            ErrorCode.INCONSISTENT_CLUSTER_ID: f"the controller's cluster is not {self._request.cluster_id}",
            ErrorCode.UNSUPPORTED_VERSION: "the cluster uses features that this software does not have",
        }
        return KafkaError(error, f"broker {self.broker_id} was rejected: {texts.get(error, error.name)}")

    # ---- heartbeats

    async def _keep_alive(self) -> None:
        interval_s = self._settings["broker.heartbeat.interval.ms"] / 1000
        while True:
            self._check_directories()
            if await self._data_loop.is_turning():
                await self._heartbeat()
            else:
                _log.error("the data loop is stuck: no heartbeat is sent, so that other brokers take over")
            await self._pause(interval_s)

    def _check_directories(self) -> None:
        if self._request.log_dirs and len(self._offline_directories()) == len(self._request.log_dirs):
            raise LogDirectoryError("every log directory is offline: this broker cannot serve anything")
        self._check_reported()

    def _check_reported(self) -> None:
        """Fail if the controller has not learned of a failed directory in time.

        Until then this broker leads replicas that cannot be written."""
        unreported = set(self._offline_directories()) - self._reported_offline
        if not unreported:
            self._unreported_since_ms = None
            return
        now_ms = self._clock.monotonic_ms()
        self._unreported_since_ms = self._unreported_since_ms or now_ms
        timeout_ms = self._settings["log.dir.failure.timeout.ms"]
        if now_ms - self._unreported_since_ms > timeout_ms:
            why = f"the controller could not be informed within log.dir.failure.timeout.ms ({timeout_ms} ms)"
            raise LogDirectoryError(f"a log directory is offline and {why}: this broker stops, so that others lead")

    async def _pause(self, interval_s: float) -> None:
        try:
            async with asyncio.timeout(interval_s):
                await self._is_wanted.wait()
        except TimeoutError:
            return
        self._is_wanted.clear()

    async def _heartbeat(self) -> None:
        try:
            response = await self._send(self._settings["broker.session.timeout.ms"] // 2, want_shut_down=False)
        except BrokerReplacedError:
            raise
        except KafkaError as error:
            _log.warning("no heartbeat reached the controller: %s", error)
            return
        if response.is_caught_up and not response.is_fenced and not self._unfenced.is_set():
            _log.info("broker %d is unfenced", self.broker_id)
            self._unfenced.set()

    async def _send(self, timeout_ms: int, *, want_shut_down: bool) -> BrokerHeartbeatResponse:
        offline = list(self._offline_directories())
        cordoned = list(self._cordoned_directories())
        request = BrokerHeartbeatRequest(
            self.broker_id,
            self.broker_epoch,
            self._next_offset - 1,
            want_shut_down=want_shut_down,
            offline_log_dirs=offline,
            cordoned_log_dirs=cordoned,
        )
        response: BrokerHeartbeatResponse = await self._link.ask(request, timeout_ms)
        error = ErrorCode(response.error_code)
        if error in {ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED}:
            why = "another process has registered with its id, or the broker was unregistered"
            text = f"broker {self.broker_id} is no longer registered as this process: {why}"
            raise BrokerReplacedError(error, text)
        if error is not ErrorCode.NONE:
            raise KafkaError(error)
        self._reported_offline = set(offline)
        self._reported_cordoned = cordoned
        return response

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    # ---- shutdown

    async def shut_down(self, move_leadership: bool) -> None:
        """Stop the heartbeats. With `move_leadership`, return when other brokers lead all partitions, or on timeout."""
        if self._task is not None:
            self._task.cancel()
        if move_leadership and self.broker_epoch != NOT_REGISTERED:
            try:
                await self._move_leadership()
            except KafkaError as error:
                _log.warning("shutting down without moving leadership to other brokers: %s", error)

    async def _move_leadership(self) -> None:
        deadline_ms = self._clock.monotonic_ms() + SHUTDOWN_TIMEOUT_MS
        while self._clock.monotonic_ms() < deadline_ms:
            response = await self._send(SHUTDOWN_ANSWER_TIMEOUT_MS, want_shut_down=True)
            if response.should_shut_down:
                return
            await asyncio.sleep(SHUTDOWN_PAUSE_S)
        _log.warning("shutting down before all leadership has moved to other brokers")


class BrokerReplacedError(KafkaError):
    """Another process is registered as this broker, which must stop."""
