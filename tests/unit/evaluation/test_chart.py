from xml.etree import ElementTree as ET

import pytest

from sskafka.evaluation.chart import draw_grid, nice_ticks, short_number
from sskafka.evaluation.latencies import Latencies
from sskafka.evaluation.results import Cell, Row, Run
from sskafka.evaluation.workers import Totals

RUN = Run("run", "2026-01-01T00:00:00+00:00", "1.0", "x86_64", 2, 100, "all", "none")
SVG = "{http://www.w3.org/2000/svg}"


def rows() -> list[Row]:
    found = []
    for brokers in (1, 2, 3):
        for replication in (1, 3):
            if replication <= brokers:
                for partitions in (1, 2, 4):
                    for phase in ("produce", "consume"):
                        totals = Totals(1000 * brokers * partitions, 100_000, 2.0, Latencies())
                        found.append(Row.of(RUN, Cell(brokers, partitions, replication), phase, 2, totals))
    return found


def test_a_line_for_each_number_of_brokers_and_replication_in_every_panel() -> None:
    picture = ET.fromstring(draw_grid(rows(), 'a title with <brackets> & "quotes"'))
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert 'a title with <brackets> & "quotes"' in texts
    for label in ("1 broker, replication 1", "3 brokers, replication 1", "3 brokers, replication 3"):
        assert texts.count(label) == 1
    lines = list(picture.iter(f"{SVG}polyline"))
    assert len(lines) == 4 * 4, "four combinations in four panels"
    assert len(list(picture.iter(f"{SVG}circle"))) == 4 * 4 * 3


def test_higher_values_are_drawn_higher_and_within_the_panel() -> None:
    picture = ET.fromstring(draw_grid(rows(), "t"))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    first = next(picture.iter(f"{SVG}polyline")).attrib["points"].split()
    heights = [float(point.split(",")[1]) for point in first]
    assert heights == sorted(heights, reverse=True)
    for line in picture.iter(f"{SVG}polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 < x < width
            assert 0 < y < height


def test_a_grid_with_one_cell_and_no_records() -> None:
    empty = Row.of(RUN, Cell(1, 1, 1), "produce", 1, Totals(0, 0, 0.0, Latencies()))
    ET.fromstring(draw_grid([empty], "t"))


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0, [0, 1]),
        (7, [0, 2, 4, 6, 8]),
        (10, [0, 2, 4, 6, 8, 10]),
        (42_000, [0, 10_000, 20_000, 30_000, 40_000, 50_000]),
    ],
)
def test_ticks_are_round_numbers_up_to_the_maximum(highest: float, ticks: list[float]) -> None:
    assert nice_ticks(highest) == ticks


def test_numbers_are_short() -> None:
    assert [short_number(value) for value in (0.5, 999, 20_000, 1_500_000)] == ["0.5", "999", "20k", "1.5M"]
