"""Recovery of a pipeline's queries before Spark starts: in which order, and what is tried again."""

from typing import Any

import pytest

from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.runner import recovery
from sskafka.pipelines.runner.recovery import ExactSink, recover_topics

ANY: Any = None


class Committers:
    """The queries `first` and `second`: a transaction of `second` hides a part of `first` until it is recovered."""

    def __init__(self, *, is_hidden_forever: bool = False) -> None:
        self._is_hidden_forever = is_hidden_forever
        self.recovered: list[str] = []

    def recover(self, name: str) -> None:
        if name == "first" and (self._is_hidden_forever or "second" not in self.recovered):
            raise ConnectorError("cannot be determined now")
        self.recovered.append(name)


class Committer:
    def __init__(self, committers: Committers, name: str) -> None:
        self._committers, self._name = committers, name

    def recover(self) -> None:
        self._committers.recover(self._name)


def recover(committers: Committers, monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = [ExactSink(name, "t", name, ANY) for name in ("first", "second")]
    monkeypatch.setattr(recovery, "exact_sinks", lambda *_: sinks)
    monkeypatch.setattr(recovery, "cluster_committer", lambda _s, _o, query_id, _owner: Committer(committers, query_id))
    recover_topics(ANY, ANY, "", "run")


def test_a_query_whose_part_another_one_hides_is_recovered_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    committers = Committers()
    recover(committers, monkeypatch)
    assert committers.recovered == ["second", "first"]


def test_a_query_that_cannot_be_recovered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectorError, match="cannot be determined"):
        recover(Committers(is_hidden_forever=True), monkeypatch)
