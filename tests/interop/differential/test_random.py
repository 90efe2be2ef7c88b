"""Apache Kafka and SSKafka answer random requests alike. `SEEDS=5,6` chooses others; a failure names its seed."""

import os

import pytest

from differential.allowed import reason_for
from differential.comparison import compare, report
from differential.generator import Generator
from differential.scripts.common import create_topic, fill
from differential.session import SCRIPT_FAILED, Session, run_script
from differential.systems import Pair

SEEDS = tuple(int(seed) for seed in os.environ.get("SEEDS", "1,2,3").split(","))
REQUESTS = 200


def random_requests(session: Session, seed: int) -> None:
    topics = {}
    for word, partitions in (("one", 1), ("two", 2)):
        name = session.name(word)
        topics[name] = create_topic(session, name, partitions)
        fill(session, name, topics[name], "a", "b", "c")
    generator = Generator(session, seed, topics)
    for _ in range(REQUESTS):
        api, version, message = generator.request()
        session.ask_message(api, version, message)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests(pair: Pair, seed: int) -> None:
    kafka, sskafka = run_script(pair, lambda session: random_requests(session, seed), f"random-{seed}")
    assert kafka[-1].api != SCRIPT_FAILED, f"seed {seed} does not run with Apache Kafka: {kafka[-1].answer}"
    found = [one for one in compare(f"seed {seed}", kafka, sskafka) if reason_for(one) is None]
    requests = "\n".join(f"{one.exchange} asked {one.exchange.request}"[:600] for one in found[:10])
    assert not found, f"seed {seed}: {len(found)} differences\n{report(found)}\n{requests}"
