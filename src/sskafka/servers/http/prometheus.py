"""Samples in the Prometheus text format 0.0.4: all samples of a name together, under its type."""

from collections.abc import Iterable
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(samples: Iterable[tuple[str, Iterable[tuple[str, str]], float]]) -> str:
    by_name: dict[str, list[str]] = {}
    for name, labels, value in samples:
        by_name.setdefault(name, []).append(f"{name}{_labels(labels)} {_number(value)}")
    return "".join(f"# TYPE {name} {_type(name)}\n" + "\n".join(lines) + "\n" for name, lines in by_name.items())


def _type(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
