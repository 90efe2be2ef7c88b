"""A data directory with every kind of file, ways to damage one of them, and a start on the result without a process.

A start must end in one of two ways: everything that the damage leaves is served and nothing else, or one sentence names
the file and says what to do next. `start_on` returns which; anything else is a `WrongStartError`.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from controllers import CLUSTER_ID, NOW_MS, create, register, running
from logs import append, batch, marker, records

from sskafka.cli.failures import explain
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import format_storage
from sskafka.records.batch import whole_batches
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import CorruptBatchError, StorageError
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager

TOPICS = ("plain", "transactional", "trimmed")
SEGMENT = LogConfig(segment_bytes=600, index_interval_bytes=100)
BATCHES = 24
PLANE_SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "400"}

Records = list[tuple[int, bytes | None]]


class WrongStartError(AssertionError):
    """A start ended in neither of the two ways."""


# ---- the directory


def build(directory: Path, *, is_clean: bool) -> dict[str, Records]:
    """Return the records of each topic, as a start on the directory must serve them."""
    return asyncio.run(_build(directory, is_clean))


async def _build(directory: Path, is_clean: bool) -> dict[str, Records]:
    logs = _open_manager(directory)
    async with running(OsDisk(), str(directory), PLANE_SETTINGS) as node:
        await register(node)
        for name in TOPICS:
            await create(node, name)
        image = node.plane.committed.image
        opened = {
            name: logs.open_log(TopicPartition(name, 0), image.topics_by_name[name].topic_id, SEGMENT, NOW_MS)
            for name in TOPICS
        }
        _fill(opened)
        found = {name: _read(log, log.log_start_offset) for name, log in opened.items()}
        marks = {log.topic_partition: log.log_end_offset for log in opened.values()}
        logs.checkpoint_high_watermarks(marks)
        opened["plain"].has_gaps = True  # as after a compaction
        logs.checkpoint_cleaned_offsets()
        if is_clean:
            logs.close(1)
        else:
            for log in opened.values():
                log.flush()
            logs.checkpoint_recovery_points()
            logs.checkpoint_log_start_offsets()
            logs.release()
    return found


def _fill(logs: dict[str, Log]) -> None:
    for number in range(BATCHES):
        append(logs["plain"], b"plain %d" % number, b"another", epoch=number // 9)
        append(logs["trimmed"], b"trimmed %d" % number)
        sequence = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number, "transactional": True}
        logs["transactional"].append_as_leader(batch(b"transactional %d" % number, **sequence), 0, NOW_MS)
        if number % 4 == 3:
            ended = marker(7, 0, commit=number % 8 == 3)
            logs["transactional"].append_as_leader(ended, 0, NOW_MS, from_client=False)
    for log in logs.values():
        log.advance_high_watermark(log.log_end_offset)
    logs["trimmed"].increment_log_start_offset(9)


def _open_manager(directory: Path) -> LogManager:
    settings = _settings(directory)
    format_storage(OsDisk(), settings, os.urandom, NOW_MS, cluster_id=None, ignore_formatted=True, skip_unusable=True)
    return LogManager.open(OsDisk(), settings.data_directories, node_id=1, metadata_path=settings.metadata_directory)


def _settings(directory: Path) -> Settings:
    return Settings.resolve({"node.id": "1", "log.dirs": str(directory), "cluster.id": CLUSTER_ID, **PLANE_SETTINGS})


def _read(log: Log, offset: int) -> Records:
    """The records from `offset` on, as a consumer reads them: one response after the other."""
    found: Records = []
    while offset < log.log_end_offset:
        data = b"".join(_read_cold(piece) for piece in log.read(offset, 500, log.log_end_offset))
        batches = [item for item in records(bytes(whole_batches(memoryview(data)))) if item[0] >= offset]
        if not batches:
            raise CorruptBatchError(f"nothing at offset {offset}")
        found += batches
        offset = batches[-1][0] + 1
    return found


def _read_cold(piece: FileSlice) -> bytes:
    """The bytes as a broker reads them from the disk: verified."""
    data = bytes(piece.read())
    if piece.is_damaged(data):
        raise CorruptBatchError(f"a batch in {piece} is damaged")
    return data


# ---- damage


def flip_bits(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 1, 1, 5))):
        if content:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def cut_off(path: Path, random: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(max(1, len(content)))])


def empty(path: Path, random: Random) -> None:
    path.write_bytes(b"")


def replace_by_directory(path: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


def replace_by_dangling_link(path: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere" / "at all")


def randomize(path: Path, random: Random) -> None:
    path.write_bytes(random.randbytes(random.randrange(2 * path.stat().st_size + 20)))


def append_garbage(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(random.randrange(1, 200)))


KINDS: dict[str, Callable[[Path, Random], None]] = {
    "flipped bits": flip_bits,
    "cut off": cut_off,
    "empty": empty,
    "directory": replace_by_directory,
    "dangling link": replace_by_dangling_link,
    "random bytes": randomize,
    "garbage at the end": append_garbage,
}


def files_of(directory: Path) -> list[str]:
    """Every file of the directory, relative to it, except locks."""
    found = (path.relative_to(directory) for path in sorted(directory.rglob("*")) if path.is_file())
    return [str(path) for path in found if path.name != ".lock"]


# ---- the start


def start_on(directory: Path, damaged: str, expected: dict[str, Records]) -> str:
    """Start and read everything. Return "refused" or "served"; raise WrongStartError if neither is right."""
    try:
        asyncio.run(_start(directory, damaged, expected))
    except WrongStartError:
        raise
    except Exception as error:
        _check_refusal(error, damaged)
        return "refused"
    return "served"


def _check_refusal(error: Exception, damaged: str) -> None:
    explanation = explain(error)
    if explanation is None:
        raise WrongStartError(f"{damaged}: a traceback: {type(error).__name__}: {error}") from error
    text = f"{explanation.cause} {explanation.hint}"
    if "\n" in text.strip():
        raise WrongStartError(f"{damaged}: more than one line: {text}") from error
    place = Path(damaged)
    named = place.name in text or (len(place.parts) > 1 and place.parts[0] in text)
    if not named:
        raise WrongStartError(f"{damaged}: the file is not named: {text}") from error
    if not any(word in text for word in ("estore", "emove", "epair", "elete", "verify")):
        raise WrongStartError(f"{damaged}: no next step: {text}") from error


async def _start(directory: Path, damaged: str, expected: dict[str, Records]) -> None:
    with _manager(directory) as logs:
        async with running(OsDisk(), str(directory), PLANE_SETTINGS) as node:
            image = node.plane.committed.image
            missing = set(TOPICS) - set(image.topics_by_name)
            if missing:
                raise WrongStartError(f"{damaged}: topics are gone: {missing}")
            for name in TOPICS:
                topic_id = image.topics_by_name[name].topic_id
                log = logs.open_log(TopicPartition(name, 0), topic_id, SEGMENT, NOW_MS)
                if not _is_set_aside(directory, name, damaged):
                    _check_log(log, damaged, expected[name])


def _is_set_aside(directory: Path, topic: str, damaged: str) -> bool:
    """Return whether the log was set aside: its partition.metadata, which has no checksum, names another topic now."""
    return damaged == f"{topic}-0/partition.metadata" and any(directory.glob(f"{topic}-0.*-stray"))


@contextmanager
def _manager(directory: Path) -> Iterator[LogManager]:
    logs = _open_manager(directory)
    try:
        yield logs
    finally:
        logs.release()


def _check_log(log: Log, damaged: str, expected: Records) -> None:
    is_damaged_here = Path(damaged).parts[0] == log.topic_partition.topic + "-0"
    may_lose = is_damaged_here and damaged.endswith(".log")
    known = dict(expected)
    start = max(log.log_start_offset, expected[0][0])
    for offset in (start, *(at for at, _ in expected[::7])):
        try:
            found = _read(log, offset) if offset <= log.log_end_offset else []
        except (CorruptBatchError, StorageError) as error:
            if not may_lose:
                raise WrongStartError(
                    f"{damaged}: {log.topic_partition} cannot be read at {offset}: {error}"
                ) from error
            continue
        wrong = [item for item in found if known.get(item[0], item[1]) != item[1]]
        if wrong:
            raise WrongStartError(f"{damaged}: {log.topic_partition} serves {wrong[0]}")
        if not may_lose and found != [item for item in expected if item[0] >= offset]:
            raise WrongStartError(f"{damaged}: {log.topic_partition} serves {len(found)} records from {offset} on")


class DamagedStarts:
    """Starts on copies of two directories, one stopped cleanly and one not, with one file damaged in each copy."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._templates = {is_clean: directory / f"clean-{is_clean}" for is_clean in (True, False)}
        self._expected = {is_clean: build(path, is_clean=is_clean) for is_clean, path in self._templates.items()}

    def files(self, *, is_clean: bool) -> list[str]:
        return files_of(self._templates[is_clean])

    def run(self, seed: int, *, file: str | None = None, kind: str | None = None, is_clean: bool | None = None) -> str:
        """Damage a file as the seed says, unless the caller does, and start. The error names the seed."""
        random = Random(seed)
        is_clean = random.random() < 0.5 if is_clean is None else is_clean
        file = file or random.choice(self.files(is_clean=is_clean))
        kind = kind or random.choice(list(KINDS))
        copy = self._directory / "copy"
        shutil.copytree(self._templates[is_clean], copy)
        try:
            KINDS[kind](copy / file, random)
            return start_on(copy, file, self._expected[is_clean])
        except WrongStartError as error:
            stop = "a clean stop" if is_clean else "kill -9"
            raise WrongStartError(f"seed {seed}, {kind}, after {stop}: {error}") from error
        finally:
            shutil.rmtree(copy)
