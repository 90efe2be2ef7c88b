"""Draw a grid as SVG: throughput by partitions for each number of brokers, and latencies.

All panels share the x axis (the measured numbers of partitions) and the colours (one per number of brokers); replicated
topics are dashed. This needs no library.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

from sskafka.evaluation.results import Row

PANEL_WIDTH, PANEL_HEIGHT = 330, 250
LEFT, TOP, RIGHT, BOTTOM = 70, 40, 20, 45
LEGEND_WIDTH = 220
TICKS = 5
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""The colours of Okabe and Ito, which colour-blind readers can distinguish."""
DASHES = ("", "6 4", "2 3", "8 3 2 3")


class Series(NamedTuple):
    label: str
    colour: str
    dash: str
    points: Sequence[tuple[int, float]]
    """Pairs of partitions and value, sorted by partitions."""


class Panel(NamedTuple):
    title: str
    unit: str
    series: Sequence[Series]


def draw_grid(rows: Sequence[Row], title: str) -> str:
    """Return the SVG document."""
    panels = [
        Panel("Produce", "records/s", _series(rows, "produce", lambda row: row.records_per_second)),
        Panel("Consume", "records/s", _series(rows, "consume", lambda row: row.records_per_second)),
        Panel("Produce latency, 50th percentile", "ms", _series(rows, "produce", lambda row: row.latency_p50_ms)),
        Panel("Produce latency, 99th percentile", "ms", _series(rows, "produce", lambda row: row.latency_p99_ms)),
    ]
    return draw_panels(panels, title)


def draw_panels(panels: Sequence[Panel], title: str) -> str:
    """Draw the panels in two columns; the legend is that of the first panel."""
    columns = 2
    width = columns * (LEFT + PANEL_WIDTH + RIGHT) + LEGEND_WIDTH
    height = 30 + ceil(len(panels) / columns) * (TOP + PANEL_HEIGHT + BOTTOM)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(width / 2, 22, title, size=15, anchor="middle"),
    ]
    for number, panel in enumerate(panels):
        x = LEFT + (number % columns) * (LEFT + PANEL_WIDTH + RIGHT)
        y = 30 + TOP + (number // columns) * (TOP + PANEL_HEIGHT + BOTTOM)
        parts += _draw_panel(panel, x, y)
    parts += _draw_legend(panels[0].series, width - LEGEND_WIDTH + 10, 30 + TOP)
    return "\n".join([*parts, "</svg>", ""])


def _series(rows: Iterable[Row], phase: str, value: Callable[[Row], float]) -> list[Series]:
    chosen = [row for row in rows if row.phase == phase]
    brokers = sorted({row.brokers for row in chosen})
    replications = sorted({row.replication for row in chosen})
    found = []
    for count in brokers:
        for replication in replications:
            points = sorted(
                (row.partitions, value(row)) for row in chosen if (row.brokers, row.replication) == (count, replication)
            )
            if points:
                colour = COLOURS[brokers.index(count) % len(COLOURS)]
                dash = DASHES[replications.index(replication) % len(DASHES)]
                found.append(Series(_label(count, replication), colour, dash, points))
    return found


def _label(brokers: int, replication: int) -> str:
    return f"{brokers} broker{'s' if brokers > 1 else ''}, replication {replication}"


def _draw_panel(panel: Panel, x: float, y: float) -> list[str]:
    partitions = sorted({partition for series in panel.series for partition, _ in series.points})
    ticks = nice_ticks(max((value for series in panel.series for _, value in series.points), default=1.0))
    top = ticks[-1]

    def at(partition: int, value: float) -> tuple[float, float]:
        share = (partitions.index(partition) + 0.5) / len(partitions)
        return x + share * PANEL_WIDTH, y + PANEL_HEIGHT * (1 - value / top)

    parts = [_text(x, y - 12, f"{panel.title} ({panel.unit})", size=13, weight="600")]
    for tick in ticks:
        _, height = at(partitions[0], tick) if partitions else (0, y)
        parts.append(f'<line x1="{x}" x2="{x + PANEL_WIDTH}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>')
        parts.append(_text(x - 8, height + 4, short_number(tick), anchor="end"))
    below = y + PANEL_HEIGHT
    parts += [_text(at(partition, 0)[0], below + 18, str(partition), anchor="middle") for partition in partitions]
    parts.append(_text(x + PANEL_WIDTH / 2, below + 36, "partitions", anchor="middle"))
    for series in panel.series:
        parts += _draw_line(series, [at(*point) for point in series.points])
    return parts


def _draw_line(series: Series, coordinates: Sequence[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)
    dash = f' stroke-dasharray="{series.dash}"' if series.dash else ""
    line = f'<polyline points="{path}" fill="none" stroke="{series.colour}" stroke-width="2"{dash}/>'
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{series.colour}"><title>{escape(series.label)}, '
        f"{partitions} partitions: {value:,.1f}</title></circle>"
        for (x, y), (partitions, value) in zip(coordinates, series.points, strict=True)
    ]
    return [line, *dots]


def _draw_legend(series: Iterable[Series], x: float, y: float) -> list[str]:
    parts = []
    for number, item in enumerate(series):
        height = y + number * 20
        dash = f' stroke-dasharray="{item.dash}"' if item.dash else ""
        line = f'x1="{x}" x2="{x + 28}" y1="{height}" y2="{height}" stroke="{item.colour}" stroke-width="2"{dash}'
        parts += [f"<line {line}/>", _text(x + 34, height + 4, item.label)]
    return parts


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", weight: str = "400") -> str:
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} fill="#222">{escape(text)}</text>'


def nice_ticks(highest: float) -> list[float]:
    """Return ticks from 0 to at least `highest`, in steps of 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(ceil(highest / step) + 1)]


def short_number(value: float) -> str:
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{suffix}"
    return f"{value:g}"
