"""The progress of a run as Prometheus reads it."""

import socket
import struct
import time
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.cli.failures import CommandError
from sskafka.cli.pipeline.commands import serving_metrics
from sskafka.pipelines.runner.metrics import MetricsServer, samples
from sskafka.pipelines.runner.progress import QueryProgress

QUERY = QueryProgress(
    "parquet",
    batch=7,
    rows_in=100,
    rows_out=90,
    lag=5,
    watermark="2026-01-01T00:00:10.000Z",
    state_rows=3,
    batch_ms=250,
    unmet={"positive": 2},
)


def scraped(server: MetricsServer, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{server.address}{path}", timeout=5) as answer:
        return str(answer.read().decode())


def test_every_number_of_a_query_is_a_sample() -> None:
    found = {name: value for name, _, value in samples("clicks", [QUERY])}
    assert found["sskafka_pipeline_rows_in_total"] == 100
    assert found["sskafka_pipeline_rows_out_total"] == 90
    assert found["sskafka_pipeline_lag_records"] == 5
    assert found["sskafka_pipeline_batch"] == 7
    assert found["sskafka_pipeline_batch_duration_seconds"] == 0.25
    assert found["sskafka_pipeline_state_rows"] == 3
    assert found["sskafka_pipeline_watermark_timestamp_seconds"] == 1767225610
    assert found["sskafka_pipeline_expectation_unmet_total"] == 2
    assert found["sskafka_pipeline_dead_letters_total"] == 0


def test_dead_letters_are_what_their_query_wrote() -> None:
    found = {name: value for name, _, value in samples("clicks", [QueryProgress("dead-letters", rows_out=4)])}
    assert found["sskafka_pipeline_dead_letters_total"] == 4


def test_the_server_serves_the_newest_progress_and_ends() -> None:
    with MetricsServer("clicks", "127.0.0.1", 0) as server:
        assert 'sskafka_pipeline_info{pipeline="clicks"' in scraped(server)
        server.update([QUERY])
        text = scraped(server)
        assert "# TYPE sskafka_pipeline_rows_in_total counter\n" in text
        assert 'sskafka_pipeline_rows_in_total{pipeline="clicks",query="parquet"} 100\n' in text
        with pytest.raises(urllib.error.HTTPError, match="404"):
            scraped(server, "/")
        address = server.address
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{address}/metrics", timeout=1)


def test_a_client_that_closes_early_is_not_reported(capfd: pytest.CaptureFixture[str]) -> None:
    """The base class of the server prints a stack trace with a BrokenPipeError or ConnectionResetError."""
    with MetricsServer("clicks", "127.0.0.1", 0) as server:
        host, _, port = server.address.rpartition(":")
        for _ in range(20):
            client = socket.create_connection((host, int(port)))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
            client.sendall(b"GET /metrics HTTP/1.0\r\n")
            client.close()
        scraped(server)
        time.sleep(0.2)
    assert capfd.readouterr().err == ""


def test_an_address_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        shown: Any = None
        with pytest.raises(CommandError, match=rf"--metrics {address}: Address already in use"):  # noqa: SIM117
            with serving_metrics(SimpleNamespace(name="clicks"), address, shown):  # type: ignore[arg-type]
                pass
