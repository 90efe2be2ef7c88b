"""Client quotas: what clients have used of them, and how long they must wait (Kafka's ClientQuotaManager).

Quotas come from the metadata image. Each broker enforces them by itself, as in Kafka. The node of the active controller
enforces `controller_mutation_rate`, on both of its event loops, so calls may come from two threads.
"""

from collections.abc import Callable, Mapping
from threading import Lock

from sskafka.metadata.image import QuotaEntity
from sskafka.metadata.quota_limits import (
    CONTROLLER_MUTATION_RATE,
    REQUEST_PERCENTAGE,
    QuotaLimits,
    Scope,
)
from sskafka.metadata.quota_rate import SampledRate, TokenBucket
from sskafka.model.acl import Caller
from sskafka.model.settings import Settings

NO_QUOTAS: Mapping[QuotaEntity, Mapping[str, float]] = {}
RATES_KEPT_MAX = 10_000


class ClientQuotaManager:
    def __init__(self, settings: Settings) -> None:
        self._windows = settings["quota.window.num"]
        self._window_ms = settings["quota.window.size.seconds"] * 1000
        self._mutation_seconds = (
            settings["controller.quota.window.num"] * settings["controller.quota.window.size.seconds"]
        )
        self._quotas = NO_QUOTAS
        self._lock = Lock()
        self._rates: dict[tuple[str, Scope], SampledRate] = {}
        self._buckets: dict[Scope, TokenBucket] = {}
        self.limits = QuotaLimits(NO_QUOTAS)

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> bool:
        """Use these quotas from now on; the mapping must not change later. Return whether they have changed."""
        if quotas is self._quotas:
            return False
        self._quotas, self.limits = quotas, QuotaLimits(quotas)
        return True

    def throttle_ms(self, key: str, user: str, client_id: str, amount: float, now_ms: float) -> int:
        """Count what a client has used. Return how long the client must wait before its next request."""
        limit = self.limits.of_client(key, user, client_id)
        if limit is None:
            return 0
        with self._lock:
            rate = self._rate(key, limit.scope, now_ms)
            rate.record(amount, now_ms)
            wait_ms = rate.throttle_ms(limit.rate, now_ms)
        if key == REQUEST_PERCENTAGE:
            wait_ms = min(wait_ms, self._window_ms)
        return round(wait_ms)

    def take_back(self, key: str, user: str, client_id: str, amount: float, now_ms: float) -> None:
        """Undo what `throttle_ms` has counted at the same time."""
        limit = self.limits.of_client(key, user, client_id)
        if limit is not None:
            with self._lock:
                self._rate(key, limit.scope, now_ms).record(-amount, now_ms)

    def window_max(self, key: str, user: str, client_id: str) -> float | None:
        """Return what a client may use at once if it has used nothing in all windows; None: it has no quota."""
        limit = self.limits.of_client(key, user, client_id)
        return None if limit is None else limit.rate * (self._windows - 1) * self._window_ms / 1000

    def mutation_wait_ms(self, user: str, client_id: str, mutations: int, now_ms: float, *, is_strict: bool) -> int:
        """Count created and deleted partitions. Return how long the client must wait; 0 if it need not.

        `is_strict`: mutations of a client that must wait are refused, and not counted."""
        limit = self.limits.of_client(CONTROLLER_MUTATION_RATE, user, client_id)
        if limit is None:
            return 0
        burst = limit.rate * self._mutation_seconds
        with self._lock:
            bucket = self._buckets.get(limit.scope)
            if bucket is None:
                self._forget_idle(now_ms)
                bucket = self._buckets[limit.scope] = TokenBucket(burst, now_ms)
            wait_ms = bucket.wait_ms(limit.rate, burst, now_ms)
            if wait_ms and is_strict:
                return max(1, round(wait_ms))
            bucket.take(mutations)
            return 0 if is_strict else round(bucket.wait_ms(limit.rate, burst, now_ms))

    def _rate(self, key: str, scope: Scope, now_ms: float) -> SampledRate:
        rate = self._rates.get((key, scope))
        if rate is None:
            self._forget_idle(now_ms)
            rate = self._rates[key, scope] = SampledRate(self._windows, self._window_ms)
        return rate

    def _forget_idle(self, now_ms: float) -> None:
        """Forget clients whose last request is older than all samples of their rates."""
        if len(self._rates) + len(self._buckets) < RATES_KEPT_MAX:
            return
        idle_ms = now_ms - self._windows * self._window_ms
        self._rates = {key: rate for key, rate in self._rates.items() if rate.last_ms >= idle_ms}
        idle_ms = now_ms - self._mutation_seconds * 1000
        self._buckets = {scope: bucket for scope, bucket in self._buckets.items() if bucket.last_ms >= idle_ms}


def user_of(principal: str) -> str:
    """Return the user name of a principal, as quotas have it."""
    return principal.partition(":")[2]


class MutationQuota:
    """The quota controller_mutation_rate, which the node of the active controller enforces."""

    def __init__(
        self, quotas: ClientQuotaManager | None, monotonic_ms: Callable[[], float], is_controller: Callable[[], bool]
    ) -> None:
        """`quotas`: None if there are none."""
        self._quotas = quotas
        self._monotonic_ms = monotonic_ms
        self._is_controller = is_controller

    @property
    def is_limited(self) -> bool:
        return self._quotas is not None and self._quotas.limits.has(CONTROLLER_MUTATION_RATE)

    def wait_ms(self, caller: Caller, mutations: int, *, is_strict: bool) -> int:
        """Count mutations. Return how long the client must wait; if `is_strict`, they must not be made then."""
        if self._quotas is None or not self.is_limited or not self._is_controller():
            return 0
        return self._quotas.mutation_wait_ms(
            user_of(caller.principal), caller.client_id, mutations, self._monotonic_ms(), is_strict=is_strict
        )


UNLIMITED_MUTATIONS = MutationQuota(None, float, bool)
