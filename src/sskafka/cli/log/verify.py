"""`sskafka log verify`: check data directories that no broker uses, and repair them on request."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data
from sskafka.runtime.clock import SystemClock
from sskafka.storage.disk import OsDisk
from sskafka.storage.verification.directory import held, verify_directory
from sskafka.storage.verification.findings import DirectoryReport, Finding, PartitionReport, Remedy
from sskafka.storage.verification.repair import Repair, repair_directory


def verify(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR", help="Log directories of stopped brokers.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild indexes, truncate torn ends, remove useless files.")
    ] = False,
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="With --repair: truncate even if that removes valid batches.")
    ] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Check every batch, index and checkpoint of data directories. The exit code is 1 if something is wrong."""
    if allow_data_loss and not repair:
        raise typer.BadParameter("requires --repair", param_hint="--allow-data-loss")
    left = 0
    for directory in directories:
        with held(str(directory), for_writing=repair):
            left += _verify(str(directory), repair, allow_data_loss, output)
    if left:
        raise CommandError(f"{left} problems found", _hint(repair, allow_data_loss))


def _hint(repair: bool, allow_data_loss: bool) -> str:
    if not repair:
        return "--repair rebuilds indexes and other derived files, and truncates torn ends"
    return (
        "the remaining problems need manual repair"
        if allow_data_loss
        else "--allow-data-loss also truncates valid batches"
    )


def _verify(path: str, repair: bool, allow_data_loss: bool, output: Format) -> int:
    """Verify one directory. Return the number of remaining problems."""
    is_text = output is Format.TABLE
    report = verify_directory(path, _print_partition if is_text else _ignore)
    if is_text:
        for finding in report.all_findings:
            print(_finding_line(finding))
    if not repair or not report.damages:
        if not is_text:
            print_data(output, _as_json(report, []))
        return len(report.damages)
    done = _repair(report, allow_data_loss, is_text)
    left = len(verify_directory(path).damages)
    if not is_text:
        print_data(output, {**_as_json(report, done), "left": left})
    return left


def _repair(report: DirectoryReport, allow_data_loss: bool, is_text: bool) -> list[Repair]:
    done = []
    for one in repair_directory(OsDisk(), report, SystemClock().now_ms(), may_lose=allow_data_loss):
        done.append(one)
        if is_text:
            print(f"{'repaired' if one.is_done else 'not repaired'}: {one.path}: {one.text}")
    return done


def _print_partition(report: PartitionReport) -> None:
    state = f"{len(report.damages)} damages" if report.damages else "sound"
    gaps = f" with {report.gaps} gaps" if report.gaps else ""
    print(
        f"{report.name}: {state}, {report.segments} segments, {report.batches} batches,"
        f" offsets {report.start_offset}..{report.end_offset}{gaps}, {report.size_bytes} bytes"
    )
    sys.stdout.flush()


def _ignore(_report: PartitionReport) -> None:
    pass


def _finding_line(finding: Finding) -> str:
    kind = "note" if finding.remedy is Remedy.NONE_NEEDED else f"damage ({finding.remedy.value})"
    return f"{kind}: {finding.path}: {finding.text}"


def _as_json(report: DirectoryReport, done: list[Repair]) -> dict[str, Any]:
    return {
        "directory": report.path,
        "partitions": [
            {
                "name": partition.name,
                "segments": partition.segments,
                "batches": partition.batches,
                "start_offset": partition.start_offset,
                "end_offset": partition.end_offset,
                "gaps": partition.gaps,
                "size_bytes": partition.size_bytes,
                "damages": len(partition.damages),
            }
            for partition in report.partitions
        ],
        "findings": [
            {"path": finding.path, "text": finding.text, "remedy": finding.remedy.value}
            for finding in report.all_findings
        ],
        "repairs": [one._asdict() for one in done],
    }
