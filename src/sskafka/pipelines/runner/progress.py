"""How a run is doing, summed up from what Spark reports of its queries. Pure: reports in, numbers out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """One query, as of its last micro-batch."""

    query: str
    batch: int = -1
    rows_in: int = 0
    """Since the run began."""
    rows_out: int = 0
    in_per_s: float = 0
    out_per_s: float = 0
    lag: int = 0
    watermark: str = ""
    state_rows: int = 0
    batch_ms: int = 0
    unmet: dict[str, int] = field(default_factory=dict)
    """Rows, since the run began, that did not meet an expectation."""


class QueryTotals:
    """Adds up the reports of one query; a report that was seen already counts once."""

    def __init__(self, query: str) -> None:
        self.progress = QueryProgress(query)
        self._seen: set[int] = set()

    def add(self, report: Mapping[str, Any]) -> None:
        """`report` is the JSON of a StreamingQueryProgress."""
        last = self.progress
        is_new = report["batchId"] not in self._seen and _has_run(report)
        if is_new:
            self._seen.add(report["batchId"])
        operators = report.get("stateOperators") or []
        self.progress = QueryProgress(
            query=last.query,
            batch=report["batchId"],
            rows_in=last.rows_in + (int(report.get("numInputRows", 0)) if is_new else 0),
            rows_out=last.rows_out + (_rows_out(report) if is_new else 0),
            in_per_s=_number(report.get("inputRowsPerSecond")),
            out_per_s=_number(report.get("processedRowsPerSecond")),
            lag=sum(lag_of(source) for source in report.get("sources", ())),
            watermark=report.get("eventTime", {}).get("watermark", ""),
            state_rows=sum(int(operator.get("numRowsTotal", 0)) for operator in operators),
            batch_ms=int(report.get("durationMs", {}).get("triggerExecution", 0)),
            unmet=_summed(last.unmet, _unmet(report)) if is_new else last.unmet,
        )


def _has_run(report: Mapping[str, Any]) -> bool:
    """A trigger without news reports the batch that may come next. One that only moves the watermark reads nothing, and
    yet rows come out of its windows; file sinks do not count those, expectations do."""
    return bool(report.get("numInputRows") or _rows_out(report) or any(_unmet(report).values()))


def lag_of(source: Mapping[str, Any]) -> int:
    """Offsets between what a source has read and what there is."""
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(partition, offset)) for partition, offset in latest.items())


def _offsets(value: Any) -> dict[str, int]:
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else {}
    topics: Mapping[str, Mapping[str, int]] = value or {}
    return {f"{topic}-{number}": int(offset) for topic, of in topics.items() for number, offset in of.items()}


def _rows_out(report: Mapping[str, Any]) -> int:
    return max(0, int(report.get("sink", {}).get("numOutputRows") or 0))


def _unmet(report: Mapping[str, Any]) -> dict[str, int]:
    prefix = "expectation_"
    return {
        name.removeprefix(prefix): int(metrics.get("unmet") or 0)
        for name, metrics in (report.get("observedMetrics") or {}).items()
        if name.startswith(prefix)
    }


def _summed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _number(value: Any) -> float:
    """Spark writes NaN and infinity as text."""
    try:
        number = float(value or 0)
    except (TypeError, ValueError):
        return 0.0
    return number if abs(number) < 1e15 else 0.0
