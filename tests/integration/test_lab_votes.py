"""Exercises 4.3.1 to 4.3.3, as the lab's own checks show them: one broker of five, the others never there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from broker_process import BrokerProcess
from free_ports import free_ports
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("_ours")

ELECTION_MS = 600_000  # the broker is alone and must not disturb by standing for election
NOBODY = {"leader_id": -1, "leader_epoch": 0, "voted_id": -1}


class LoneBroker:
    def __init__(self, directory: Path) -> None:
        self.home = directory
        ports = free_ports(6)
        self.url = f"http://127.0.0.1:{ports[0]}"
        voters = [f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports[1:], 1)]
        self.process = BrokerProcess(
            directory,
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[1]}",
                "http.listener": f"127.0.0.1:{ports[0]}",
                "controller.quorum.voters": ",".join(voters),
                "controller.quorum.fetch.timeout.ms": ELECTION_MS,
                "controller.quorum.first.election.delay.ms": ELECTION_MS,
                "initial.broker.registration.timeout.ms": ELECTION_MS,
                "metadata.log.dir": directory / "metadata",
                "log.dir.partition.base": 1,
                "lab.api": "true",
            },
        )

    def start(self) -> "LoneBroker":
        """It will not be ready without the others; its HTTP server starts."""
        self.process.launch()
        wait_until(self._answers, "the HTTP server answers", 30)
        return self

    def restart(self, *, unclean: bool = False) -> None:
        if unclean:
            self.process.kill()
        else:
            self.process.stop()
        self.start()

    def _answers(self) -> bool:
        assert self.process.is_running, self.process.log
        try:
            return httpx.get(f"{self.url}/healthcheck", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = httpx.post(f"{self.url}/kraft/v1/{path}", json=body, trust_env=False)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def vote(self, epoch: int, candidate: str, last_offset: int = 0, last_offset_epoch: int = -1) -> dict[str, Any]:
        return self.post(
            "voteRequest",
            {
                "candidate_epoch": epoch,
                "last_offset": last_offset,
                "last_offset_epoch": last_offset_epoch,
                "candidate_id": candidate,
            },
        )

    def begin(self, epoch: int, leader: str) -> dict[str, Any]:
        return self.post("beginQuorumEpoch", {"leader_epoch": epoch, "leader_id": leader})

    def state(self) -> dict[str, int]:
        state: dict[str, int] = json.loads((self.home / "metadata" / "quorum-state").read_text())
        return state

    def leader(self) -> int:
        leader: int = httpx.get(f"{self.url}/healthcheck", trust_env=False).json()["leader_broker_id"]
        return leader


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LoneBroker]:
    broker = LoneBroker(tmp_path / "broker")
    try:
        yield broker.start()
    finally:
        broker.process.close()


def test_only_the_first_vote_of_an_epoch_is_granted_also_after_a_restart(broker: LoneBroker) -> None:
    assert broker.state() == NOBODY
    assert broker.leader() == -1
    assert broker.vote(1, "3") == {"granted": True}
    assert broker.state() == NOBODY | {"voted_id": 3}
    broker.restart(unclean=True)
    assert broker.vote(1, "4") == {"granted": False, "leader_epoch": 0, "leader_id": -1}
    assert broker.vote(1, "3") == {"granted": True}, "the same candidate may ask again"
    assert broker.vote(2, "4") == {"granted": True}
    assert broker.vote(1, "3")["granted"] is False, "the epoch is over"
    assert broker.state()["voted_id"] == 4


def test_a_new_leader_is_stored_and_followed(broker: LoneBroker) -> None:
    assert broker.begin(1, "3") == {"accepted": True}
    assert (broker.state()["leader_id"], broker.state()["leader_epoch"]) == (3, 1)
    assert broker.leader() == 3
    assert broker.begin(1, "3") == {"accepted": True}, "the very state already stored"
    assert broker.begin(1, "2") == {"accepted": False, "leader_epoch": 1, "leader_id": "3"}
    assert broker.begin(0, "2") == {"accepted": False, "leader_epoch": 1, "leader_id": "3"}
    broker.restart()
    assert broker.begin(1, "2") == {"accepted": False, "leader_epoch": 1, "leader_id": "3"}
    assert broker.begin(4, "2") == {"accepted": True}
    assert broker.leader() == 2
    assert broker.vote(4, "5") == {"granted": False, "leader_epoch": 4, "leader_id": "2"}
    assert broker.vote(5, "5") == {"granted": True}


def test_the_console_shows_the_last_vote(broker: LoneBroker) -> None:
    def state() -> Any:
        return httpx.get(f"{broker.url}/api/v1/lab", trust_env=False).json()

    assert state()["quorum_state"] == NOBODY
    assert broker.vote(3, "2") == {"granted": True}
    shown = state()
    assert (shown["quorum_state"]["voted_id"], shown["leader_id"]) == (2, -1)
    assert (shown["lines"], shown["journal"]) == (0, [])
    assert shown["settings"] == {"log.dir.partition.base": "1", "lab.api": "true"}
    assert httpx.get(f"{broker.url}/api/v1/console", trust_env=False).json()["features"] == ["lab"]
