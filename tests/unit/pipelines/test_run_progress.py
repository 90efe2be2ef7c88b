from typing import Any

from sskafka.pipelines.runner.errors import explained
from sskafka.pipelines.runner.progress import QueryProgress, QueryTotals, dead_letters, lag_of

REPORT = {
    "batchId": 3,
    "numInputRows": 100,
    "timestamp": "2026-01-01T00:00:10.000Z",
    "sources": [{"endOffset": {"a": {"0": 10, "1": 5}}, "latestOffset": {"a": {"0": 15, "1": 5}}}],
    "sink": {"numOutputRows": -1},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 7}, {"numRowsTotal": 2}],
    "durationMs": {"triggerExecution": 250},
    "observedMetrics": {"expectation_positive": {"unmet": 4}, "other": {"x": 1}, "sskafka_out": {"rows": 90}},
}


def test_a_report_is_summed_up_once() -> None:
    totals = QueryTotals("parquet")
    totals.add(REPORT)
    totals.add(REPORT)
    totals.add({**REPORT, "batchId": 4, "numInputRows": 10, "observedMetrics": {"sskafka_out": {"rows": 0}}})
    progress = totals.progress
    assert (progress.rows_in, progress.rows_out, progress.lag, progress.state_rows) == (110, 90, 5, 9)
    assert (progress.batch, progress.batch_ms, progress.out_per_s) == (4, 250, 0)
    assert progress.unmet == {"positive": 4}


def test_a_spark_connect_server_reports_the_same_in_another_form() -> None:
    rows = {"values": [90], "schema": {"type": "struct", "fields": [{"name": "rows", "type": "long"}]}}
    report: dict[str, Any] = {**REPORT, "observedMetrics": {"sskafka_out": rows}}
    del report["numInputRows"]
    report["sources"] = [{"numInputRows": 60}, {"numInputRows": 40}]
    totals = QueryTotals("parquet")
    totals.add(report)
    assert (totals.progress.rows_in, totals.progress.rows_out) == (100, 90)


def test_rows_that_go_to_topics_are_counted_by_spark() -> None:
    totals = QueryTotals("topic")
    for batch, rows in ((3, 90), (4, 0), (5, 7)):
        totals.add({**REPORT, "batchId": batch, "sink": {"numOutputRows": rows}, "observedMetrics": {}})
    totals.add({**REPORT, "batchId": 6, "numInputRows": 0, "observedMetrics": {}})  # no batch: Spark reports -1
    assert totals.progress.rows_out == 97


def test_rates_are_over_the_time_from_batch_to_batch() -> None:
    totals = QueryTotals("parquet")
    totals.add(REPORT)
    assert (totals.progress.in_per_s, totals.progress.out_per_s) == (400, 360)  # the first: as long as it took
    totals.add({**REPORT, "batchId": 4, "timestamp": "2026-01-01T00:00:20.000Z"})
    assert (totals.progress.in_per_s, totals.progress.out_per_s) == (10, 9)
    assert totals.progress.left_s == 0.5
    totals.add({**REPORT, "batchId": 5, "numInputRows": 0, "observedMetrics": {}})  # nothing came
    assert (totals.progress.in_per_s, totals.progress.out_per_s, totals.progress.rows_in) == (0, 0, 200)
    assert totals.progress.batch == 4
    assert totals.progress.left_s is None


def test_a_watermark_before_the_first_record_is_none() -> None:
    totals = QueryTotals("parquet")
    totals.add({**REPORT, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
    assert totals.progress.watermark == ""


def test_dead_letters_are_what_their_query_wrote() -> None:
    assert dead_letters([QueryProgress("a", rows_out=7), QueryProgress("dead-letters", rows_out=2)]) == 2


def test_lag_of_offsets_as_text_and_of_sources_without() -> None:
    assert lag_of({"endOffset": '{"a": {"0": 1}}', "latestOffset": '{"a": {"0": 4, "1": 9}}'}) == 3
    assert lag_of({"endOffset": None, "latestOffset": None}) == 0
    assert lag_of({"endOffset": "7", "latestOffset": "9"}) == 0


def test_the_innermost_cause_is_told() -> None:
    text = """[STREAM_FAILED] Query [id = x] terminated with exception: boom SQLSTATE: XXKST
=== Streaming Query ===
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "x.py", line 1, in read
sskafka.pipelines.connector.errors.DataLossError: orders-0: offsets 0 to 5 were to be read, but the log begins at 3
pyspark.errors.exceptions.base.PySparkRuntimeError: wrapped
"""
    assert explained(Exception(text)) == "orders-0: offsets 0 to 5 were to be read, but the log begins at 3"


def test_a_plain_error_is_told_as_it_is() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1 pos 14;\n'Project [*]"
    assert explained(Exception(text)) == "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found."
    assert explained(ValueError()) == "ValueError"


def test_rows_of_a_batch_that_only_moves_the_watermark_are_expected_too() -> None:
    totals = QueryTotals("parquet")
    idle = {"batchId": 1, "numInputRows": 0, "sink": {"numOutputRows": -1}}
    closing = {**idle, "observedMetrics": {"expectation_nothing_lost": {"unmet": 2}}}
    for report in (idle, closing, closing, {**idle, "batchId": 2}):
        totals.add(report)
    assert totals.progress.unmet == {"nothing_lost": 2}


def test_what_a_batch_has_read_is_described_for_people() -> None:
    totals = QueryTotals("parquet")
    many = {str(number): 9 for number in range(10)}
    sources = [
        {
            "description": "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1f",
            "startOffset": {"#topic-ids": {"a": "x"}, "a": {"0": 5}},
            "endOffset": {"#topic-ids": {"a": "x"}, "a": {"0": 10, "1": 5}, "b": {"0": 1}},
        },
        {"startOffset": None, "endOffset": {"c": many}},
        {"endOffset": "17"},
    ]
    totals.add({**REPORT, "sources": sources})
    shown = ", ".join(f"{number}: 0..9" for number in range(8))
    assert totals.progress.reads == f"a[0: 5..10, 1: 0..5], b[0: 0..1]; c[{shown}, 2 more]"
    assert totals.progress.topics == "a, b; c"
    totals.add({**REPORT, "batchId": 4, "numInputRows": 0, "observedMetrics": {}})
    assert totals.progress.topics == "a, b; c", "an idle trigger has read nothing"
