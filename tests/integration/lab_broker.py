"""A broker of the lab that says what a test tells it to: for what real ones do only by chance, or not at all."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Route = Callable[[Any], tuple[int, Any]]
"""The body of a request in, status and body out; NO_ANSWER closes the connection instead."""

NO_ANSWER = -1


class LabBroker:
    """`routes` are found by method and path, such as 'GET /admin/v1/topics'; `requests` holds those that came."""

    def __init__(self, broker_id: int, leader_id: int) -> None:
        self.broker_id = broker_id
        self.leader_id = leader_id
        self.requests: list[tuple[str, Any]] = []
        self.routes: dict[str, Route] = {"GET /healthcheck": lambda _: (200, self._health())}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def entry(self) -> str:
        """In a list of brokers."""
        return f"{self.broker_id}@127.0.0.1:{self._server.server_address[1]}"

    def count(self, route: str) -> int:
        return sum(name == route for name, _ in self.requests)

    @contextmanager
    def serving(self) -> Iterator["LabBroker"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """From now on connections are refused."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, route: str, body: Any) -> tuple[int, Any]:
        self.requests.append((route, body))
        if route in self.routes and (self.leader_id == self.broker_id or route == "GET /healthcheck"):
            return self.routes[route](body)
        return 421, {"detail": f"leader is {self.leader_id}, can't accept"}

    def _health(self) -> dict[str, object]:
        return {"status": "up", "broker_id": self.broker_id, "leader_broker_id": self.leader_id}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        broker = self

        class Handler(BaseHTTPRequestHandler):
            def __getattr__(self, name: str) -> Callable[[], None]:
                if name.startswith("do_"):  # whatever the method
                    return self._handle
                raise AttributeError(name)

            def _handle(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, body = broker.answer(f"{self.command} {self.path}", json.loads(data) if data else None)
                if status == NO_ANSWER:
                    self.close_connection = True
                    return
                text = json.dumps(body).encode() if body is not None else b""
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Tests read `requests`."""

        return Handler
