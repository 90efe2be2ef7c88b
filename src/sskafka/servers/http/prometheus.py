"""Samples in the Prometheus text format 0.0.4: all samples of a metric together, under its help and type."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sskafka.servers.http.metric_table import Metric, MetricKind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Samples = Iterable[tuple[str, Iterable[tuple[str, str]], float]]


def exposition(samples: Samples, metrics: Mapping[str, Metric]) -> str:
    """Return the text. `metrics`: the metric of each sample name; samples of others have no help and no type."""
    families: dict[str, tuple[Metric, list[tuple[str, str]]]] = {}
    for name, labels, value in samples:
        metric = metrics.get(name) or Metric(name, MetricKind.UNTYPED, "")
        lines = families.setdefault(metric.name, (metric, []))[1]
        lines.append((name, f"{_labels(labels)} {_number(value)}\n"))
    return "".join(part for metric, lines in families.values() for part in _family(metric, lines))


def _family(metric: Metric, lines: list[tuple[str, str]]) -> Iterator[str]:
    yield from _heading(metric.name, metric.kind, metric.help)
    for name, line in lines:
        yield name + line
    if metric.alias is not None:
        yield from _heading(metric.alias, metric.alias_kind, metric.help)
        for name, line in lines:
            yield metric.alias + name.removeprefix(metric.name) + line


def _heading(name: str, kind: MetricKind, text: str) -> Iterator[str]:
    if text:
        yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
