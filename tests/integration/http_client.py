"""A client of a broker's HTTP server, for tests."""

import json
from typing import Any

import httpx

TIMEOUT_S = 30


class HttpClient:
    """JSON in, status and JSON out; connections are kept."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = httpx.Client(base_url=f"http://{address}", timeout=TIMEOUT_S, trust_env=False)

    def close(self) -> None:
        self.http.close()

    def get(self, path: str) -> tuple[int, Any]:
        return _answer(self.http.get(path))

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        return _answer(self.http.post(path, content=json.dumps(body)))  # ASCII: half a surrogate pair gets through

    def patch(self, path: str, body: Any) -> tuple[int, Any]:
        return _answer(self.http.patch(path, content=json.dumps(body)))

    def delete(self, path: str) -> tuple[int, Any]:
        return _answer(self.http.delete(path))

    def create(self, topic: str, partitions: int = 1) -> None:
        status, answer = self.post("/admin/v1/topics", {"topic_name": topic, "partition_count": partitions})
        assert status == 201, answer

    def produce(self, partition: str, payload: str, key: str | None = None, acks: object = "1") -> None:
        body = {"topic_partition": partition, "key": key, "payload": payload, "acks": acks}
        answer = self.post("/data/v1/produce", body)
        assert answer == (204, None), answer

    def consume(self, partition: str, last_offset: int = -1, **more: Any) -> dict[str, Any]:
        body = {"topic_partition": partition, "last_offset": last_offset, **more}
        status, answer = self.post("/data/v1/consume", body)
        assert status == 200, answer
        assert isinstance(answer, dict)
        return answer


def _answer(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json() if response.content else None


def ok(answer: tuple[int, Any], expected: int = 200) -> Any:
    """Return the body of an answer that has the expected status."""
    status, body = answer
    assert status == expected, body
    return body
