"""`sskafka log`: the files of a log directory in words, as kafka-dump-log prints them."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli import index_dump
from sskafka.cli.failures import CommandError
from sskafka.cli.index_dump import LEADER_EPOCHS_FILE, offset_index_problems, time_index_problems
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format
from sskafka.cli.segment_dump import SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, Shape, dump_lines, json_lines, text_lines

app = typer.Typer(
    help="Look into the files of a log directory.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

_LINES_BY_SUFFIX: dict[str, Callable[[Path], Iterator[str]]] = {
    ".index": index_dump.offset_index_lines,
    ".timeindex": index_dump.time_index_lines,
    ".txnindex": index_dump.transaction_index_lines,
    ".snapshot": index_dump.producer_snapshot_lines,
}
_PROBLEMS_BY_SUFFIX = {".index": offset_index_problems, ".timeindex": time_index_problems}
_SEGMENT_SUFFIXES = {SEGMENT_SUFFIX, SNAPSHOT_SUFFIX}


@app.callback()
def log() -> None:
    """Look into the files of a log directory."""


@app.command()
def dump(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help=".log, .index, .timeindex, .txnindex, .snapshot, .checkpoint files."),
    ] = None,
    files: Annotated[
        list[str] | None, typer.Option("--files", metavar="FILE,...", help="The same, as kafka-dump-log takes them.")
    ] = None,
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Keys and values too.")] = False,
    deep_iteration: Annotated[bool, typer.Option("--deep-iteration", help="A line for each record.")] = False,
    cluster_metadata: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Values are metadata records: print them as JSON.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Of each record only key and value.")
    ] = False,
    verify_index: Annotated[
        bool,
        typer.Option("--verify-index", "--verify-index-only", help="Only compare indexes with their segments."),
    ] = False,
    max_bytes: Annotated[int | None, typer.Option("--max-bytes", help="Read so much of a segment.")] = None,
    text: Annotated[bool, typer.Option("--text", help="'offset key payload' for each record.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each batch; short for --format.")] = False,
    output: FormatOption = Format.TEXT,
) -> None:
    """Print what is in log files, in the words of kafka-dump-log."""
    chosen = [*(paths or ()), *(Path(name.strip()) for names in files or () for name in names.split(","))]
    if not chosen:
        raise typer.BadParameter("name a file", param_hint="FILE")
    as_json = as_json or output is Format.JSON
    contents = print_data_log or cluster_metadata
    shape = Shape(contents or deep_iteration, contents, not skip_record_metadata, cluster_metadata)
    problems = 0
    for path in chosen:
        if path.suffix in _SEGMENT_SUFFIXES and (text or as_json):
            _print(text_lines(path) if text else json_lines(path))
        else:
            problems += _dump(path, shape, verify_index, max_bytes)
    if problems:
        raise CommandError(
            f"{problems} index entries do not agree with their segment",
            "delete the index file while the broker is down: it makes it anew at its next start",
        )


def _dump(path: Path, shape: Shape, verify_index: bool, max_bytes: int | None) -> int:
    """Prints one file; the number of index entries that are wrong."""
    if not path.is_file():
        raise CommandError(f"{path} is not a file", "`ls` in the partition's directory shows its segments")
    print(f"Dumping {path}")
    if path.suffix in _SEGMENT_SUFFIXES:
        _print(dump_lines(path, shape, max_bytes))
        return 0
    if not (verify_index and path.suffix in _PROBLEMS_BY_SUFFIX):
        _print(_lines(path))
    return _verify(path) if path.suffix in _PROBLEMS_BY_SUFFIX else 0


def _lines(path: Path) -> Iterator[str]:
    if path.name == LEADER_EPOCHS_FILE:
        return index_dump.leader_epoch_lines(path)
    lines = _LINES_BY_SUFFIX.get(path.suffix)
    if lines is None:
        known = ", ".join(sorted([*_LINES_BY_SUFFIX, *_SEGMENT_SUFFIXES, LEADER_EPOCHS_FILE]))
        raise CommandError(f"{path} is no file of a log: those end in {known}")
    return lines(path)


def _verify(path: Path) -> int:
    if not path.with_suffix(SEGMENT_SUFFIX).is_file():
        return 0
    problems = _PROBLEMS_BY_SUFFIX[path.suffix](path)
    if problems:
        _print(chain([f"Mismatches in :{path}"], problems))
    return len(problems)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)
