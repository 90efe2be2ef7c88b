"""The key set of an OAuth provider, read over HTTP."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from secure_broker import SecureBroker
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("_ours")


def test_keys_are_read_from_a_provider(tmp_path: Path) -> None:
    class KeySet(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (tmp_path / "keys.json").read_bytes()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    provider = HTTPServer(("127.0.0.1", 0), KeySet)
    thread = threading.Thread(target=provider.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{provider.server_port}/keys"
    broker = SecureBroker(tmp_path, {"sasl.oauthbearer.jwks.endpoint.url": url})
    try:
        broker.start()
        client = AdminClient(broker.librdkafka("SASL_PLAINTEXT", "OAUTHBEARER"))
        client.poll(0)  # has the token fetched
        wait_until(lambda: client.list_topics(timeout=10).brokers, "the token was not accepted")
    finally:
        broker.close()
        provider.shutdown()
        thread.join()
        provider.server_close()
