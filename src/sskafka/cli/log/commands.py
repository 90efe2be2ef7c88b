"""`sskafka log`: print the files of a log directory like kafka-dump-log, and verify them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.log import index as log_index
from sskafka.cli.log.contents import FORMS, Decoder, PlainDecoder, Topic, decoder_for, form_of_class, text_of
from sskafka.cli.log.index import INDEX_SUFFIXES, LEADER_EPOCHS_FILE, index_problem_lines
from sskafka.cli.log.segment import SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, TEXT, Shape, batches_json, dump_lines, text_lines
from sskafka.cli.log.verify import verify
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_item, talk
from sskafka.storage import offset_index
from sskafka.storage.verification.index import sanity_problem

app = typer.Typer(
    help="Dump, verify and repair the files of a log directory.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_LINES_BY_SUFFIX: dict[str, Callable[[Path], Iterator[str]]] = {
    ".index": log_index.offset_index_lines,
    ".timeindex": log_index.time_index_lines,
    ".txnindex": log_index.transaction_index_lines,
    ".snapshot": log_index.producer_snapshot_lines,
}
_SEGMENT_SUFFIXES = {SEGMENT_SUFFIX, SNAPSHOT_SUFFIX}


app.command()(verify)


@app.callback()
def log() -> None:
    """Dump, verify and repair the files of a log directory."""


FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help=".log, .index, .timeindex, .txnindex, .snapshot, .checkpoint files."),
]
FilesOption = Annotated[
    list[str] | None, typer.Option("--files", metavar="FILE,...", help="The same, as kafka-dump-log takes them.")
]
ClusterMetadataOption = Annotated[
    bool, typer.Option("--cluster-metadata-decoder", help="Values are metadata records: print them as JSON.")
]
OffsetsOption = Annotated[
    bool, typer.Option("--offsets-decoder", help="Records are those of __consumer_offsets: print them as JSON.")
]
TransactionLogOption = Annotated[
    bool,
    typer.Option("--transaction-log-decoder", help="Records are those of __transaction_state: print them as JSON."),
]
ShareStateOption = Annotated[
    bool,
    typer.Option("--share-group-state-decoder", help="Records are those of __share_group_state: print them as JSON."),
]
KeyDecoderOption = Annotated[
    str | None, typer.Option("--key-decoder-class", metavar="CLASS", help=f"Keys are: {', '.join(FORMS)}.")
]
ValueDecoderOption = Annotated[
    str | None, typer.Option("--value-decoder-class", metavar="CLASS", help="The same for values.")
]
SkipMetadataOption = Annotated[
    bool, typer.Option("--skip-record-metadata", help="Print only key and value of each record.")
]
VerifyIndexOption = Annotated[
    bool,
    typer.Option("--verify-index", "--verify-index-only", help="Only compare indexes with their segments."),
]
SanityCheckOption = Annotated[
    bool,
    typer.Option("--index-sanity-check", help="Only check whether a broker would keep the index at startup."),
]


@app.command()
def dump(
    paths: FilesArgument = None,
    files: FilesOption = None,
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Print keys and values too.")] = False,
    deep_iteration: Annotated[bool, typer.Option("--deep-iteration", help="Print a line for each record.")] = False,
    cluster_metadata: ClusterMetadataOption = False,
    offsets: OffsetsOption = False,
    transaction_log: TransactionLogOption = False,
    share_state: ShareStateOption = False,
    key_decoder: KeyDecoderOption = None,
    value_decoder: ValueDecoderOption = None,
    skip_record_metadata: SkipMetadataOption = False,
    verify_index: VerifyIndexOption = False,
    index_sanity_check: SanityCheckOption = False,
    max_bytes: Annotated[int | None, typer.Option("--max-bytes", min=1, help="Bytes to read of a segment.")] = None,
    max_message_size: Annotated[int | None, typer.Option("--max-message-size", hidden=True)] = None,
    text: Annotated[bool, typer.Option("--text", help="'offset key payload' for each record.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the contents of log files in the format of kafka-dump-log."""
    chosen = [*(paths or ()), *(Path(name.strip()) for names in files or () for name in names.split(","))]
    if not chosen:
        raise typer.BadParameter("name a file", param_hint="FILE")
    topics = {
        Topic.CONSUMER_OFFSETS: offsets,
        Topic.TRANSACTION_STATE: transaction_log,
        Topic.SHARE_GROUP_STATE: share_state,
        Topic.CLUSTER_METADATA: cluster_metadata,
    }
    decoder = _decoder([topic for topic, wanted in topics.items() if wanted], key_decoder, value_decoder)
    contents = print_data_log or decoder is not TEXT
    shape = Shape(contents or deep_iteration, contents, not skip_record_metadata, decoder)
    wrong: list[str] = []
    for path in chosen:
        if path.suffix in _SEGMENT_SUFFIXES and (text or output.is_data):
            if text:
                _print(text_lines(path))
            else:
                for batch in batches_json(path):
                    print_item(output, batch)
        elif index_sanity_check and path.suffix in INDEX_SUFFIXES:
            wrong += _check_sanity(path)
        else:
            wrong += _dump(path, shape, verify_index, max_bytes)
    _complain(wrong)


def _decoder(topics: list[Topic], key_class: str | None, value_class: str | None) -> Decoder:
    if topics:
        return decoder_for(topics[0])
    if key_class is None and value_class is None:
        return TEXT
    return PlainDecoder(_form(key_class, "--key-decoder-class"), _form(value_class, "--value-decoder-class"))


def _form(class_name: str | None, option: str) -> Callable[[bytes], str]:
    form = text_of if class_name is None else form_of_class(class_name)
    if form is None:
        raise typer.BadParameter(f"supported: {', '.join(FORMS)}", param_hint=option)
    return form


def _dump(path: Path, shape: Shape, verify_index: bool, max_bytes: int | None) -> list[str]:
    """Print one file. Return the problems of an index."""
    _open_for_dump(path)
    if path.suffix in _SEGMENT_SUFFIXES:
        _print(dump_lines(path, shape, max_bytes))
        return []
    if _is_empty_index(path):
        return []
    if not (verify_index and path.suffix in INDEX_SUFFIXES):
        _print(_lines(path))
    return index_problem_lines(path)


def _check_sanity(path: Path) -> list[str]:
    _open_for_dump(path)
    if _is_empty_index(path):
        return []
    problem = sanity_problem(path)
    if problem is None:
        print(f"{path} passed sanity check.")
    return [] if problem is None else [problem]


def _open_for_dump(path: Path) -> None:
    if not path.is_file():
        raise CommandError(f"{path} is not a file", "`ls` in the partition's directory shows its segments")
    print(f"Dumping {path}")


def _is_empty_index(path: Path) -> bool:
    is_empty = path.suffix == offset_index.SUFFIX and path.stat().st_size == 0
    if is_empty:
        print(f"{path} is empty.")
    return is_empty


def _lines(path: Path) -> Iterator[str]:
    if path.name == LEADER_EPOCHS_FILE:
        return log_index.leader_epoch_lines(path)
    lines = _LINES_BY_SUFFIX.get(path.suffix)
    if lines is None:
        known = ", ".join(sorted([*_LINES_BY_SUFFIX, *_SEGMENT_SUFFIXES, LEADER_EPOCHS_FILE]))
        raise CommandError(f"{path} is not a log file: known suffixes are {known}")
    return lines(path)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)


def _complain(wrong: list[str]) -> None:
    for line in wrong:
        talk(line)
    if wrong:
        raise CommandError(
            "an index does not agree with its segment", "`sskafka log verify DIR --repair` rebuilds it from the log"
        )
