import json
import random

import pytest

from sskafka.evaluation.latencies import GROWTH, Latencies


def of(*values_ms: float) -> Latencies:
    latencies = Latencies()
    for value in values_ms:
        latencies.add(value)
    return latencies


@pytest.mark.parametrize("percent", [50, 95, 99, 99.9, 100])
def test_percentiles_are_close_to_the_true_ones(percent: float) -> None:
    drawn = random.Random(5)
    values = sorted(drawn.expovariate(0.1) for _ in range(5000))
    true = values[min(len(values) - 1, int(len(values) * percent / 100 - 1e-9))]
    found = of(*values).percentile_ms(percent)
    assert true / GROWTH <= found <= true * GROWTH


def test_average_and_maximum_are_exact() -> None:
    latencies = of(1.0, 2.0, 9.0)
    assert (latencies.average_ms, latencies.max_ms) == (4.0, 9.0)
    assert latencies.percentile_ms(100) == 9.0


def test_nothing_measured_is_zero() -> None:
    assert (Latencies().average_ms, Latencies().percentile_ms(99)) == (0.0, 0.0)


def test_histograms_are_merged_also_after_serialization() -> None:
    values = [0.001, 0.5, 3.0, 3.0, 250.0]
    whole, sum_of_parts = of(*values), Latencies()
    for part in (values[:2], values[2:]):
        sum_of_parts.merge(Latencies.from_json(json.loads(json.dumps(of(*part).to_json()))))
    assert sum_of_parts.to_json() == whole.to_json()
