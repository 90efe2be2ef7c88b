"""What a stranger can read: files of the broker on a shared machine, records through a browser (DNS rebinding)."""

import os
import stat
from pathlib import Path

import httpx
from broker_process import StartBroker
from wire_connection import Connection, values_batch


def test_files_are_closed_to_other_users(start_broker: StartBroker) -> None:
    umask = os.umask(0)
    try:
        broker = start_broker()
    finally:
        os.umask(umask)
    with Connection(broker.bootstrap) as client:
        client.create_topic("t")
        client.produce("t", values_batch(b"record"))
    open_to_others = [
        str(path) for path in [broker.data_directory, *broker.data_directory.rglob("*")] if mode_of(path) & 0o027
    ]
    assert open_to_others == []
    assert mode_of(broker.data_directory / "__cluster_metadata-0") == 0o700


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_page_of_another_site_reads_no_records_through_dns_rebinding(start_broker: StartBroker) -> None:
    broker = start_broker({"http.listener": "127.0.0.1:0"})
    with Connection(broker.bootstrap) as client:
        client.create_topic("t")
        client.produce("t", values_batch(b"secret"))
    for method, path in (("GET", "/topics"), ("GET", "/metrics"), ("HEAD", "/topics"), ("POST", "/topics/t")):
        answer = httpx.request(method, f"http://{broker.http}{path}", headers={"Host": "evil.example:8080"})
        assert answer.status_code == 403, (method, path)
    assert httpx.get(f"http://{broker.http}/livez", headers={"Host": "balancer"}).status_code == 200
    assert httpx.get(f"http://{broker.http}/metrics").status_code == 200
