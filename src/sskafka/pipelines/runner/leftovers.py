"""Moves files that a killed run left in the directory of a Parquet sink out of the way.

Spark's file sink lists the files of each batch in DIR/_spark_metadata, and Spark's reader uses these lists. All other
readers read every file in the directory. They would see rows twice that a killed run wrote in part and the next run
wrote again.

    batch 6 is listed     files of batch 7, killed     this run starts     batch 7 is listed
    ───────┴─────────────────────────┴──────────────────────────┴─────────────────────┴───────> time

A recent file that was written before this run and is in no list belongs to a batch that was not completed, or to a run
that is still alive. Each batch is listed once: as soon as there is a newer list, a file that it does not contain will
never be listed. Recent means: within the last ten lists. Older files were there before the pipeline or come from
another program, and are left alone. So are files in subdirectories that are not partitions (day=1): they belong to
another sink or job.

Files are not deleted, but moved to DIR/_cut-off, which readers of Parquet ignore. Only local directories are
handled.
"""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import ParquetSink

logger = logging.getLogger(__name__)

LISTS = "_spark_metadata"
ASIDE = "_cut-off"
COMPACT = ".compact"
_RECENT_LISTS = 10
_WRITTEN_BY_SPARK = re.compile(r"part-\d{5}-[0-9a-f-]{36}\S*\.parquet")


class Leftovers:
    """The unlisted files of one directory at the start of a run."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._newest = newest_list(self._directory)
        self._found = tuple(_unlisted(self._directory))

    def maybe_set_aside(self) -> int:
        """Move the files that can no longer be listed, and return their number. To be called regularly."""
        if not self._found or newest_list(self._directory) <= self._newest:
            return 0
        listed = listed_names(self._directory)
        unneeded = [file for file in self._found if file.name not in listed]
        self._found = ()
        try:
            for file in unneeded:
                self._set_aside(file)
        except OSError as error:
            logger.warning("files of an interrupted run remain in %s, where other readers see them: %s", file, error)
            return 0
        logger.info("%d files of an interrupted run were moved to %s", len(unneeded), self._directory / ASIDE)
        return len(unneeded)

    def _set_aside(self, file: Path) -> None:
        aside = self._directory / ASIDE
        aside.mkdir(exist_ok=True)
        file.rename(aside / file.name)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def parquet_paths(pipeline: Pipeline) -> list[str]:
    return [pipeline.resolved(sink.path) for sink in pipeline.sinks if isinstance(sink, ParquetSink)]


def newest_list(directory: Path) -> int:
    """Return the number of the newest batch that is listed; -1 if there is none."""
    return max(_lists(directory), default=-1)


def listed_names(directory: Path) -> set[str]:
    """Return the names of the files that belong to the table; names are unique across directories."""
    lists = _lists(directory)
    whole = max((number for number, file in lists.items() if file.suffix == COMPACT), default=-1)
    needed = (file for number, file in lists.items() if number >= whole)
    return {name for file in needed for name in _names_in(file)}


def _lists(directory: Path) -> dict[int, Path]:
    """Return the lists by batch. Every tenth list is a compacted one that includes all before it."""
    files = (directory / LISTS).glob("[0-9]*")
    numbers = ((file.name.removesuffix(COMPACT), file) for file in files)
    return {int(number): file for number, file in numbers if number.isdecimal()}


def _names_in(file: Path) -> Iterator[str]:
    """Yield the names in a list: a line with the version, then one JSON object per line."""
    for line in file.read_text().splitlines()[1:]:
        yield json.loads(line)["path"].rpartition("/")[2]


def _unlisted(directory: Path) -> Iterator[Path]:
    """Yield recent files of Spark that are in no list."""
    if not (directory / LISTS).is_dir():
        return
    since_ns, listed = _recent_since_ns(directory), listed_names(directory)
    for file in directory.rglob("part-*.parquet"):
        is_unlisted = _WRITTEN_BY_SPARK.fullmatch(file.name) and file.name not in listed
        if is_unlisted and _is_in_partitions(file, directory) and file.stat().st_mtime_ns > since_ns:
            yield file


def _is_in_partitions(file: Path, directory: Path) -> bool:
    return all("=" in folder for folder in file.parent.relative_to(directory).parts)


def _recent_since_ns(directory: Path) -> int:
    """Return the time after which files count as recent. The directory of lists is older than its first list."""
    lists = [file for _, file in sorted(_lists(directory).items())]
    return (lists or [directory / LISTS])[-_RECENT_LISTS:][0].stat().st_mtime_ns
