"""The pipeline under fault: orders join payments, windows count and sum them, and two topics get the rows exactly once.

    orders   ─┐                       ┌─> topic joined   each pair once
              ├─ join, 30 s apart ─┤
    payments ─┘                       └─ windows of 10 s ─> topic windows   each window once, when it is over

Event time is the timestamp of the records. It advances with each tick that the harness writes, in every partition of
both topics, so no record is late whatever the faults delay.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

PARTITIONS = 2
TICK_MS = 2_000
WINDOW_MS = 10_000
APART_MS = 30_000
ORDERS_PER_TICK = 6
COUNTRIES = ("at", "de", "fr")
FIRST_MS = 1_700_000_000_000
LONG_AFTER_MS = 3_600_000
"""A record so much later ends every window before it."""
CLOSING = "closing"
FILE = """\
name: {name}
sources:
  orders:
    topic: {name}-orders
    format: text
    event_time: _timestamp
    watermark: 2 minutes
    max_offsets_per_trigger: 400
  payments:
    topic: {name}-payments
    format: text
    event_time: _timestamp
    watermark: 2 minutes
    max_offsets_per_trigger: 400
steps:
  ordered:
    sql: |
      select split_part(value, ' ', 1) as id, split_part(value, ' ', 2) as country,
             cast(split_part(value, ' ', 3) as long) as amount, _timestamp as at
      from orders
  paid:
    sql: |
      select split_part(value, ' ', 1) as id, split_part(value, ' ', 2) as payment, _timestamp as paid_at
      from payments
  joined:
    sql: |
      select ordered.id as id, payment, country, amount, at
      from ordered join paid
        on ordered.id = paid.id and paid_at >= at and paid_at <= at + interval 30 seconds
transform:
  sql: |
    select unix_millis(window(at, '10 seconds').start) as start, country, count(*) as pairs, sum(amount) as total
    from joined group by window(at, '10 seconds'), country
sinks:
  - topic: {{name: windows, topic: {name}-windows, partitions: 2}}
  - topic: {{name: joined, topic: {name}-joined, from: joined, key: id, partitions: 2}}
trigger: 200 milliseconds
spark: {{spark.sql.shuffle.partitions: 2}}
"""


class Order(NamedTuple):
    id: str
    country: str
    amount: int
    at_ms: int

    @property
    def text(self) -> str:
        return f"{self.id} {self.country} {self.amount} {self.at_ms}"


class Payment(NamedTuple):
    id: str
    payment: str
    at_ms: int

    @property
    def text(self) -> str:
        return f"{self.id} {self.payment} {self.at_ms}"


class Pair(NamedTuple):
    id: str
    payment: str
    country: str
    amount: int


class Window(NamedTuple):
    start: int
    country: str
    pairs: int
    total: int


@dataclass(slots=True)
class Shop:
    """Makes up orders and their payments: none, one or two each, some too late to match."""

    chance: random.Random
    ticks: int = 0
    _due: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    def tick(self) -> tuple[list[Order], list[Payment]]:
        at_ms = FIRST_MS + self.ticks * TICK_MS
        orders = [self._order(number, at_ms) for number in range(ORDERS_PER_TICK)]
        payments = [Payment(*which, at_ms) for which in self._due.pop(self.ticks, [])]
        self.ticks += 1
        return orders, payments

    def _order(self, number: int, at_ms: int) -> Order:
        order = Order(f"{self.ticks}.{number}", self.chance.choice(COUNTRIES), self.chance.randrange(1, 100), at_ms)
        for payment in range(self.chance.choice((0, 1, 1, 2))):
            due = self.ticks + self.chance.randrange(1, 2 * APART_MS // TICK_MS)
            self._due.setdefault(due, []).append((order.id, f"{order.id}/{payment}"))
        return order

    def closing(self) -> tuple[list[Order], list[Payment]]:
        """What ends every window; nothing joins with it."""
        at_ms = FIRST_MS + self.ticks * TICK_MS + LONG_AFTER_MS
        return [Order(CLOSING, CLOSING, 0, at_ms)], [Payment("nobody", CLOSING, at_ms)]


def orders_of(values: Iterable[str]) -> Iterator[Order]:
    for value in values:
        name, country, amount, at_ms = value.split()
        yield Order(name, country, int(amount), int(at_ms))


def payments_of(values: Iterable[str]) -> Iterator[Payment]:
    for value in values:
        name, payment, at_ms = value.split()
        yield Payment(name, payment, int(at_ms))


def answer(orders: Iterable[Order], payments: Iterable[Payment]) -> tuple[Counter[Pair], Counter[Window]]:
    """What the two topics must hold in the end, computed over all input at once."""
    paid: dict[str, list[Payment]] = {}
    for payment in payments:
        paid.setdefault(payment.id, []).append(payment)
    pairs: Counter[Pair] = Counter()
    counts: Counter[tuple[int, str]] = Counter()
    totals: Counter[tuple[int, str]] = Counter()
    for order in orders:
        window = (order.at_ms // WINDOW_MS * WINDOW_MS, order.country)
        for payment in paid.get(order.id, []):
            if 0 <= payment.at_ms - order.at_ms <= APART_MS:
                pairs[Pair(order.id, payment.payment, order.country, order.amount)] += 1
                counts[window] += 1
                totals[window] += order.amount
    return pairs, Counter(Window(*window, count, totals[window]) for window, count in counts.items())
