"""Random faults under a pipeline with a join, windows and exactly-once topics: the output becomes the batch answer.

SEED replays the faults of a run, as far as time allows; FAULTS says how many there are.
"""

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from cluster_network import Network, NetworkedCluster
from cluster_processes import ClusterProcesses
from fault_kinds import PROGRESS_WITHIN_S, Scene, faults_of
from operating import QUERIES, InputWriter, Operator, create_inputs, expected, found_pairs, found_windows, input_count

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
FAULTS = int(os.environ.get("FAULTS") or 50)
KEPT = Path(__file__).resolve().parents[2] / "build" / "spark-faults"
NET = "10.214"
"""Apart from that of `make chaos`."""
SETTINGS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
ANSWER_WITHIN_S = 300
SHOWN_MAX = 10


class Struck(NamedTuple):
    at_s: float
    fault: str
    victim: str
    batches: list[int]


@contextmanager
def kept_on_failure() -> Iterator[Path]:
    """A directory with everything that brokers and runs write."""
    directory = KEPT / f"{SEED}-{os.getpid()}"
    directory.mkdir(parents=True)
    try:
        yield directory
    except BaseException:
        sys.stderr.write(f"seed {SEED}: brokers' directories and logs are kept in {directory}\n")
        raise
    shutil.rmtree(directory)


@contextmanager
def running(directory: Path, chance: random.Random) -> Iterator[Scene]:
    two_phase = chance.choice(("true", "false"))
    settings = {**SETTINGS, "transaction.two.phase.commit.enable": two_phase}
    with ExitStack() as cleanup:
        network = None
        if os.geteuid() == 0:
            network = Network(3, NET)
            cleanup.callback(network.close)
        say(f"two-phase commits {two_phase}; network partitions {'no: they need root' if network is None else 'yes'}")
        home = directory / "brokers"
        brokers = (
            ClusterProcesses(home, 3, settings) if network is None else NetworkedCluster(home, network, 3, settings)
        )
        cleanup.callback(brokers.close)
        brokers.start()
        create_inputs(brokers.bootstrap)
        operator = Operator(directory, brokers.bootstrap)
        cleanup.callback(operator.close)
        yield Scene(brokers, network, operator, chance)


def say(text: str) -> None:
    sys.stderr.write(f"seed {SEED}: {text}\n")


@pytest.mark.timeout(0)
def test_the_output_is_the_batch_answer_after_random_faults() -> None:
    say(f"{FAULTS} faults")
    chance = random.Random(SEED)
    with kept_on_failure() as directory, running(directory, chance) as scene:
        written = InputWriter(scene.brokers.bootstrap, SEED)
        struck: list[Struck] = []
        try:
            scene.operator.start()
            strike_at_random(scene, struck)
            scene.mend_everything()
            scene.wait_for_progress()
        finally:
            written.stop()
            print_what_was_done(scene, struck)
        assert_answer(scene, written)


def strike_at_random(scene: Scene, struck: list[Struck]) -> None:
    """Half of the faults find every query at work; the others strike whatever the last one has left."""
    began = time.monotonic()
    scene.wait_for_progress()
    for _ in range(FAULTS):
        if scene.chance.random() < 0.5:
            scene.wait_for_progress()
        scene.pause(scene.chance.uniform(0, 4))
        fault = scene.chance.choice(faults_of(scene))
        at_s, batches = time.monotonic() - began, scene.operator.batches_done()
        victim = fault(scene)
        struck.append(Struck(at_s, fault.__name__.replace("_", " "), victim, batches))
        say(f"{at_s:6.1f} s  {struck[-1].fault}: {victim}")


def print_what_was_done(scene: Scene, struck: list[Struck]) -> None:
    lines = [f"{'TIME':>8}  {'FAULT':34} {'BATCHES DONE':14} VICTIM"]
    lines += [f"{one.at_s:7.1f}s  {one.fault:34} {one.batches!s:14} {one.victim}" for one in struck]
    lines += ["", f"{'TIME':>8}  CODE  RUN THAT ENDED"]
    lines += [f"{one.at_s:7.1f}s  {one.code:4}  {one.last_word[:150]}" for one in scene.operator.ended]
    sys.stderr.write("\n".join(["", *lines, "", ""]))


def assert_answer(scene: Scene, written: InputWriter) -> None:
    bootstrap = scene.brokers.bootstrap
    count = input_count(bootstrap)

    def is_read() -> bool:
        return all(scene.operator.records_read(query) >= count for query in QUERIES)

    scene.wait_until(is_read, f"every query has read {count} records", PROGRESS_WITHIN_S)
    written.close_windows()
    pairs, windows = expected(bootstrap)

    def is_there() -> bool:
        return found_pairs(bootstrap).total() >= pairs.total() and found_windows(bootstrap).total() >= windows.total()

    scene.wait_until(is_there, f"{len(pairs)} pairs and {len(windows)} windows are committed", ANSWER_WITHIN_S)
    say(f"{count} records in, {len(pairs)} pairs and {len(windows)} windows out, {len(scene.operator.runs)} runs")
    assert_equal(found_pairs(bootstrap), pairs)
    assert_equal(found_windows(bootstrap), windows)


def assert_equal(found: Counter[NamedTuple], wanted: Counter[NamedTuple]) -> None:
    lost, extra = wanted - found, found - wanted
    assert not lost, f"{lost.total()} rows are missing, such as {list(lost)[:SHOWN_MAX]}"
    assert not extra, f"{extra.total()} rows are there too often, such as {list(extra)[:SHOWN_MAX]}"
