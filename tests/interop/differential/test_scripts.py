"""Apache Kafka and SSKafka answer the same scripts alike, field by field."""

import pytest

from differential.allowed import reason_for
from differential.catalogue import ONE_BROKER, THREE_BROKERS, Script, scripts_of
from differential.comparison import Difference, compare, report
from differential.session import SCRIPT_FAILED, run_script
from differential.systems import Pair

EXCHANGES_MIN = 1500

_exchanges: dict[str, int] = {}


def check(pair: Pair, script: Script) -> None:
    """A difference counts when it shows twice: brokers of both systems apply metadata a moment after they answer."""
    found = differences(pair, script, script.prefix) and differences(pair, script, f"{script.prefix}2")
    assert not found, f"{len(found)} differences\n{report(found)}"


def differences(pair: Pair, script: Script, prefix: str) -> list[Difference]:
    kafka, sskafka = run_script(pair, script.run, prefix)
    assert kafka[-1].api != SCRIPT_FAILED, f"the script does not run with Apache Kafka: {kafka[-1].answer}"
    _exchanges[script.name] = len(kafka)
    return [one for one in compare(script.name, kafka, sskafka) if reason_for(one) is None]


@pytest.mark.parametrize("script", scripts_of(ONE_BROKER), ids=lambda script: script.name)
def test_one_broker(pair: Pair, script: Script) -> None:
    check(pair, script)


@pytest.mark.parametrize("script", scripts_of(THREE_BROKERS), ids=lambda script: script.name)
def test_three_brokers(cluster_pair: Pair, script: Script) -> None:
    check(cluster_pair, script)


def test_exchanges_are_many() -> None:
    if len(_exchanges) < len(scripts_of(ONE_BROKER + THREE_BROKERS)):
        pytest.skip("only some of the scripts ran")
    assert sum(_exchanges.values()) >= EXCHANGES_MIN, _exchanges
