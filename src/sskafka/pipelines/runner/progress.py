"""Progress of a run, aggregated from the reports of Spark about its queries. Pure: takes reports, returns numbers.

Spark counts rows that go to topics, but not those of files and tables. Queries with such sinks count their rows by an
observation called OUT, which is part of the reports.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sskafka.pipelines.connector.offsets import without_additions
from sskafka.pipelines.files.pipeline import DEAD_LETTERS

OUT, ROWS = "sskafka_out", "rows"
IN = "sskafka_in_"
"""Prefix of the count of a source that is read as a batch; streams report what they read."""
EXPECTATION, UNMET = "expectation_", "unmet"
PARTITIONS_SHOWN_MAX = 8
_BRACKETS = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """One query, as of its last micro-batch."""

    query: str
    batch: int = -1
    rows_in: int = 0
    """Number of rows since the run began."""
    rows_out: int = 0
    in_per_s: float = 0
    """Rate since the previous micro-batch."""
    out_per_s: float = 0
    lag: int = 0
    watermark: str = ""
    state_rows: int = 0
    batch_ms: int = 0
    unmet: dict[str, int] = field(default_factory=dict)
    """Number of rows, since the run began, that did not meet an expectation, by name."""
    reads: str = ""
    """Topics and offsets of the last micro-batch for display: `orders[0: 5..17, 1: 3..9]`."""

    @property
    def topics(self) -> str:
        """The topics of `reads`, without their offsets."""
        return _BRACKETS.sub("", self.reads)

    @property
    def left_s(self) -> float | None:
        """Seconds until the lag is gone at the current rate; None if that is not known."""
        return self.lag / self.in_per_s if self.lag and self.in_per_s else None


def dead_letters(queries: Iterable[QueryProgress]) -> int:
    """Return the number of dead letters since the run began."""
    return sum(query.rows_out for query in queries if query.query == DEAD_LETTERS)


class QueryTotals:
    """Sums of the reports of one query; a report that is added twice counts once."""

    def __init__(self, query: str) -> None:
        self.progress = QueryProgress(query)
        self._seen: set[int] = set()
        self._began_s: float | None = None
        """When the newest batch began."""

    def add(self, report: Mapping[str, Any]) -> None:
        """Add the JSON of a StreamingQueryProgress."""
        if report["batchId"] in self._seen:
            return
        if _has_run(report):
            self._add_batch(report)
        else:
            self._note_idle(report)

    def _add_batch(self, report: Mapping[str, Any]) -> None:
        last, rows_in, rows_out = self.progress, _rows_in(report), _rows_out(report)
        seconds = self._seconds(report)
        self._seen.add(report["batchId"])
        self.progress = QueryProgress(
            query=last.query,
            batch=report["batchId"],
            rows_in=last.rows_in + rows_in,
            rows_out=last.rows_out + rows_out,
            in_per_s=rows_in / seconds,
            out_per_s=rows_out / seconds,
            lag=_lag(report),
            watermark=_watermark(report) or last.watermark,
            state_rows=_state_rows(report),
            batch_ms=_batch_ms(report),
            unmet=_summed(last.unmet, _unmet(report)),
            reads=described_sources(report),
        )

    def _note_idle(self, report: Mapping[str, Any]) -> None:
        """Take the lag from the report of a trigger without new records, which describes the next batch."""
        last = self.progress
        self.progress = QueryProgress(
            query=last.query,
            batch=last.batch,
            rows_in=last.rows_in,
            rows_out=last.rows_out,
            lag=_lag(report),
            watermark=_watermark(report) or last.watermark,
            state_rows=_state_rows(report),
            batch_ms=last.batch_ms,
            unmet=last.unmet,
            reads=last.reads,
        )

    def _seconds(self, report: Mapping[str, Any]) -> float:
        """Return the time from the start of the previous batch to the start of this one; of a first batch, its
        duration."""
        before, self._began_s = self._began_s, _time_s(report.get("timestamp"))
        taken = max(0.001, _batch_ms(report) / 1000)
        return taken if before is None or self._began_s is None else max(taken, self._began_s - before)


def _has_run(report: Mapping[str, Any]) -> bool:
    """Return whether a batch has run. One that only advances the watermark reads nothing, but windows emit rows."""
    return bool(_rows_in(report) or _rows_out(report) or any(_unmet(report).values()))


def lag_of(source: Mapping[str, Any]) -> int:
    """Return the number of offsets between the position of a source and the end of its topics."""
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(partition, offset)) for partition, offset in latest.items())


def _lag(report: Mapping[str, Any]) -> int:
    return sum(lag_of(source) for source in report.get("sources", ()))


def described_sources(report: Mapping[str, Any]) -> str:
    """Return what a micro-batch has read, by source.

    Spark describes a source that is written in Python only by the name and address of a Java object."""
    return "; ".join(filter(None, map(_described, report.get("sources", ()))))


def _described(source: Mapping[str, Any]) -> str:
    start, end = _by_topic(source.get("startOffset")), _by_topic(source.get("endOffset"))
    return ", ".join(f"{topic}[{_ranges(start.get(topic, {}), offsets)}]" for topic, offsets in end.items())


def _ranges(start: Mapping[str, int], end: Mapping[str, int]) -> str:
    listed = [f"{number}: {start.get(number, 0)}..{offset}" for number, offset in end.items()]
    more = len(listed) - PARTITIONS_SHOWN_MAX
    return ", ".join((*listed[:PARTITIONS_SHOWN_MAX], f"{more} more") if more > 0 else listed)


def _offsets(value: Any) -> dict[str, int]:
    return {f"{topic}-{number}": int(offset) for topic, of in _by_topic(value).items() for number, offset in of.items()}


def _by_topic(value: Any) -> dict[str, Mapping[str, int]]:
    """Return offsets that Spark reports as JSON or as a mapping; empty for other sources."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else {}
    topics: Mapping[str, Mapping[str, int]] = value or {}
    return dict(without_additions(topics))


def _observed(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return metrics by name. A Spark Connect server sends them as values and their schema."""
    return {
        name: _named(metrics) if "values" in metrics and "schema" in metrics else metrics
        for name, metrics in (report.get("observedMetrics") or {}).items()
    }


def _named(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {field["name"]: value for field, value in zip(row["schema"]["fields"], row["values"], strict=True)}


def _rows_in(report: Mapping[str, Any]) -> int:
    """Return the number of rows read. A Spark Connect server omits the sum over all sources."""
    by_source = sum(int(source.get("numInputRows") or 0) for source in report.get("sources", ()))
    return int(report.get("numInputRows", by_source))


def _rows_out(report: Mapping[str, Any]) -> int:
    observed = _observed(report)
    if OUT in observed:
        return int(observed[OUT].get(ROWS) or 0)
    return max(0, int((report.get("sink") or {}).get("numOutputRows") or 0))  # -1: Spark does not know


def _unmet(report: Mapping[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix(EXPECTATION): int(metrics.get(UNMET) or 0)
        for name, metrics in _observed(report).items()
        if name.startswith(EXPECTATION)
    }


def _watermark(report: Mapping[str, Any]) -> str:
    """Return the watermark; empty before the first record, when Spark reports 1970."""
    watermark = str(report.get("eventTime", {}).get("watermark", ""))
    return "" if watermark.startswith("1970-01-01T00:00:00") else watermark


def _state_rows(report: Mapping[str, Any]) -> int:
    return sum(int(operator.get("numRowsTotal", 0)) for operator in report.get("stateOperators") or ())


def _batch_ms(report: Mapping[str, Any]) -> int:
    return int(report.get("durationMs", {}).get("triggerExecution", 0))


def _time_s(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _summed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}
