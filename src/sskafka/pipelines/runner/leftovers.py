"""Files that a killed run left in the directory of a Parquet sink, set aside once nobody can need them.

Spark's file sink lists the files of each batch in DIR/_spark_metadata, and its own reader goes by these lists. All
other readers take the directory as it lies: they would see twice what one run had written half and the next one whole.

    batch 6 is listed     files of batch 7, killed     this run starts     batch 7 is listed
    ───────┴─────────────────────────┴──────────────────────────┴─────────────────────┴───────> time

What was written lately, before this run, and is in no list is of a batch that was cut off, or of a run that is still
alive. Each batch is listed once: as soon as there is a newer list, what it does not name will never be named.
Lately is: within the last ten lists. What is older was there before, or others have put it there: it is left alone.
So is what lies in directories below that are not those of partitions (day=1): they are another sink's or job's.
Nothing is deleted: what was set aside lies in DIR/_cut-off, a name that readers of Parquet pass over. Only directories
of this machine are looked at.
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
_COMPACT = ".compact"
_LISTS_LATELY = 10
_WRITTEN_BY_SPARK = re.compile(r"part-\d{5}-[0-9a-f-]{36}\S*\.parquet")


class Leftovers:
    """Of one directory, as a run finds it."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._newest = newest_list(self._directory)
        self._found = tuple(_unlisted(self._directory))

    def maybe_set_aside(self) -> int:
        """To be called now and then; how many files are in nobody's way any more."""
        if not self._found or newest_list(self._directory) <= self._newest:
            return 0
        listed = listed_names(self._directory)
        unneeded = [file for file in self._found if file.name not in listed]
        self._found = ()
        try:
            for file in unneeded:
                self._set_aside(file)
        except OSError as error:
            logger.warning("files of a run that was cut off stay in %s, where others may read them: %s", file, error)
            return 0
        logger.info("%d files of a run that was cut off lie in %s now", len(unneeded), self._directory / ASIDE)
        return len(unneeded)

    def _set_aside(self, file: Path) -> None:
        aside = self._directory / ASIDE
        aside.mkdir(exist_ok=True)
        file.rename(aside / file.name)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def parquet_paths(pipeline: Pipeline) -> list[str]:
    return [pipeline.resolved(sink.path) for sink in pipeline.sinks if isinstance(sink, ParquetSink)]


def newest_list(directory: Path) -> int:
    """The number of the newest batch that is listed; -1 while there is none."""
    return max(_lists(directory), default=-1)


def listed_names(directory: Path) -> set[str]:
    """Names of the files that belong to the table; each name is given once, whatever directory it is in."""
    lists = _lists(directory)
    whole = max((number for number, file in lists.items() if file.suffix == _COMPACT), default=-1)
    needed = (file for number, file in lists.items() if number >= whole)
    return {name for file in needed for name in _names_in(file)}


def _lists(directory: Path) -> dict[int, Path]:
    """By batch. Every tenth holds all before it as well, and is marked."""
    files = (directory / LISTS).glob("[0-9]*")
    numbers = ((file.name.removesuffix(_COMPACT), file) for file in files)
    return {int(number): file for number, file in numbers if number.isdecimal()}


def _names_in(file: Path) -> Iterator[str]:
    """One JSON object a line, behind a line with the version."""
    for line in file.read_text().splitlines()[1:]:
        yield json.loads(line)["path"].rpartition("/")[2]


def _unlisted(directory: Path) -> Iterator[Path]:
    """Files that Spark wrote lately and did not list."""
    if not (directory / LISTS).is_dir():
        return
    since_ns, listed = _lately_ns(directory), listed_names(directory)
    for file in directory.rglob("part-*.parquet"):
        is_unlisted = _WRITTEN_BY_SPARK.fullmatch(file.name) and file.name not in listed
        if is_unlisted and _is_in_partitions(file, directory) and file.stat().st_mtime_ns > since_ns:
            yield file


def _is_in_partitions(file: Path, directory: Path) -> bool:
    return all("=" in folder for folder in file.parent.relative_to(directory).parts)


def _lately_ns(directory: Path) -> int:
    """Since when. Before the first list is written its directory is made."""
    lists = [file for _, file in sorted(_lists(directory).items())]
    return (lists or [directory / LISTS])[-_LISTS_LATELY:][0].stat().st_mtime_ns
