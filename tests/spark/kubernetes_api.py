"""A stand-in for the API server of Kubernetes that stores what spark-submit creates; it starts no pods."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

UID = "00000000-0000-0000-0000-000000000001"
CREATED_WITH = {"POST": "application/json", "PATCH": "application/apply-patch+yaml"}
"""The content types of the two ways to create an object; Spark's client sends JSON, which is YAML too."""


class KubernetesApi(NamedTuple):
    address: str
    created: list[tuple[str, dict[str, Any]]]
    """Path of the collection or object, and the object, in the order of the requests."""

    def object_of_kind(self, kind: str) -> dict[str, Any]:
        (found,) = [created for _, created in self.created if created["kind"] == kind]
        return found


@contextmanager
def kubernetes_api() -> Iterator[KubernetesApi]:
    created: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def create(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Type"].partition(";")[0] != CREATED_WITH[self.command]:
                self.send_error(415)
                return
            received = json.loads(content)
            created.append((urlsplit(self.path).path, received))
            answer = json.dumps({**received, "metadata": {**received["metadata"], "uid": UID}}).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_PATCH = create  # noqa: N815  the names that the server calls

        def log_message(self, *_: object) -> None:
            """Requests are in `created`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield KubernetesApi(f"http://127.0.0.1:{server.server_port}", created)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
