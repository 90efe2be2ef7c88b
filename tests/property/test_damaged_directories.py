"""Every kind of file of a data directory, damaged in every way: the start serves what is left or refuses in a sentence.

tests/fuzz/damaged runs thousands of random ones. A failure names its seed.
"""

import logging
from collections.abc import Iterator

import pytest
from damaged_directory import KINDS, DamagedStarts

RANDOM_STARTS = 30
FILES = (
    "meta.properties",
    "bootstrap.checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "__cluster_metadata-0/00000000000000000000.log",
    "__cluster_metadata-0/quorum-state",
    "__cluster_metadata-0/synced-offset",
    "transactional-0/00000000000000000014.log",
    "transactional-0/00000000000000000014.index",
    "transactional-0/00000000000000000014.timeindex",
    "transactional-0/00000000000000000014.txnindex",
    "transactional-0/00000000000000000014.snapshot",
    "transactional-0/leader-epoch-checkpoint",
    "transactional-0/partition.metadata",
)


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedStarts]:
    level = logging.getLogger("sskafka").level
    logging.getLogger("sskafka").setLevel(logging.CRITICAL)
    yield DamagedStarts(tmp_path_factory.mktemp("damaged"))
    logging.getLogger("sskafka").setLevel(level)


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file(starts: DamagedStarts, file: str) -> None:
    for is_clean in (True, False):
        assert file in starts.files(is_clean=is_clean), f"{file} is not among {starts.files(is_clean=is_clean)}"
        for seed, kind in enumerate(KINDS):
            starts.run(seed, file=file, kind=kind, is_clean=is_clean)


def test_a_damaged_mark_of_a_clean_stop(starts: DamagedStarts) -> None:
    for seed, kind in enumerate(KINDS):
        starts.run(seed, file=".kafka_cleanshutdown", kind=kind, is_clean=True)


def test_damaged_metadata_snapshots(starts: DamagedStarts) -> None:
    for file in starts.files(is_clean=True):
        if file.endswith("-0000000001.checkpoint"):
            for seed, kind in enumerate(KINDS):
                starts.run(seed, file=file, kind=kind, is_clean=True)


def test_damage_at_random(starts: DamagedStarts) -> None:
    for seed in range(RANDOM_STARTS):
        starts.run(seed)
