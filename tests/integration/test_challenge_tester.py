"""The challenge's tester: passes programs that do what is asked for, names what is wrong with those that do not."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import challenge_server
import pytest
from broker_process import COMMAND
from waiting import wait_until

from sskafka.challenge.log_directory import DirectoryInUseError, prepare
from sskafka.challenge.program import ProgramError, Repository
from sskafka.challenge.tester import (
    STAGES,
    BadCasesError,
    ChallengeSettings,
    ChallengeTester,
    all_cases,
    cases_named,
    parse_cases,
)

ROOT = Path(__file__).parents[2]

RunProgram = Callable[..., dict[str, tuple[str, ...]]]


def free_ports() -> tuple[int, int]:
    """Both in the properties file, so they must be known before the program starts."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def repository_with(directory: Path, script: str) -> Path:
    directory.mkdir(exist_ok=True)
    program = directory / "your_program.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (directory / "codecrafters.yml").write_text("debug: false\n")
    return directory


def settings_in(tmp_path: Path, **options: object) -> ChallengeSettings:
    port, controller_port = free_ports()
    return ChallengeSettings(
        tmp_path / "server.properties",
        tmp_path / "logs",
        port,
        controller_port,
        **{"seed": 5, "shared": True, **options},  # type: ignore[arg-type]
    )


@pytest.fixture
def findings(tmp_path: Path) -> RunProgram:
    """Runs stages against the small server with a flaw; what was found, by stage."""

    def run(flaw: str, *slugs: str, **options: object) -> dict[str, tuple[str, ...]]:
        script = f"exec {sys.executable} {challenge_server.__file__} {flaw} $1"
        repository = Repository.at(repository_with(tmp_path / "program", script))
        settings = settings_in(tmp_path, **options)
        cases = cases_named(slugs) if slugs else all_cases()
        return {
            verdict.case.stage.slug: verdict.findings for verdict in ChallengeTester(repository, settings).run(cases)
        }

    return run


def test_a_program_that_does_everything_passes(findings: RunProgram) -> None:
    found = findings("none")
    assert found == dict.fromkeys(found, ())
    assert found.keys() == {stage.slug for stage in STAGES}


FLAWS = {
    "wrong_correlation_id": ("wa6", "correlation_id (INT32, bytes 0..3)"),
    "fixed_correlation_id": ("wa6", "7 instead of"),
    "unknown_version_taken": ("nc5", "error_code (INT16, bytes 4..5): 0 (NONE) instead of 35 (UNSUPPORTED_VERSION)"),
    "fetch_not_listed": ("gs0", "Fetch (api_key 1) is missing"),
    "old_versions_listed": ("pv1", "ApiVersions (api_key 18) has versions 0..0, but 4 is required"),
    "closes_after_one_request": ("nh4", "the program closed the connection"),
    "one_connection_at_a_time": ("sk0", "did not arrive within"),
    "answers_out_of_order": ("pipe", "correlation_id (INT32, bytes 0..3)"),
    "size_too_large": ("pv1", "did not arrive within"),
    "surplus_byte": ("pv1", "1 bytes follow the response"),
    "missing_byte": ("vt6", "tags (TAG_BUFFER, byte"),
    "unknown_topic_without_error": ("vt6", "topics[0].error_code (INT16, bytes 10..11): 0 (NONE) instead of 3"),
    "topics_unsorted": ("wq2", "].name (COMPACT_NULLABLE_STRING"),
    "wrong_topic_id": ("ea7", "topics[0].topic_id (UUID, bytes"),
    "limit_ignored": ("page", "topics[0].partitions.length (COMPACT_ARRAY"),
    "unknown_topic_id_without_error": ("hn6", "0 (NONE) instead of 100 (UNKNOWN_TOPIC_ID)"),
    "high_watermark_behind": ("eg2", "high_watermark (INT64"),
    "records_changed": ("eg2", "they differ from byte"),
    "first_batch_only": ("fd8", "bytes are the same"),
    "offsets_of_refusals": ("ck2", "base_offset (INT64, bytes"),
    "not_on_disk": ("ps7", "which are not the"),
    "on_disk_too_late": ("sb8", "contains 0 bytes"),
    "offset_in_file": ("ps7", "starts at offset 5 instead of 0"),
    "one_partition_written": ("mf2", "-1/00000000000000000000.log contains 0 bytes"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_named(flaw: str, findings: RunProgram) -> None:
    slug, words = FLAWS[flaw]
    (found,) = findings(flaw, slug, answer_seconds_max=1.0).values()
    assert words in "\n".join(found)


def test_every_flaw_is_tested() -> None:
    apart = {"none", "exits", "never_listens", "ignores_sigterm"}
    assert FLAWS.keys() | apart == set(challenge_server.FLAWS)


def test_a_program_that_ends_at_once(findings: RunProgram) -> None:
    assert findings("exits", "vi6") == {"vi6": ("the program exited with code 3 before it listened",)}


def test_a_program_that_never_listens(findings: RunProgram) -> None:
    ((found,),) = findings("never_listens", "vi6", start_seconds_max=0.5).values()
    assert found.startswith("nothing listens on port")


def test_a_program_that_does_not_end(findings: RunProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.challenge.program._STOP_SECONDS_MAX", 0.3)
    monkeypatch.setattr("sskafka.challenge.program._GRACE_SECONDS", 0.1)
    assert findings("ignores_sigterm", "vi6") == {"vi6": ("the program is still running 0.3 s after SIGTERM",)}


def test_nothing_that_was_started_is_left(tmp_path: Path) -> None:
    """Not even what the program left behind in the background."""
    server = f"{sys.executable} {challenge_server.__file__} none $1"
    script = f"{server} & echo $! > {tmp_path}/pid; wait"
    settings = settings_in(tmp_path)
    repository = Repository.at(repository_with(tmp_path / "program", script))
    (verdict,) = ChallengeTester(repository, settings).run(cases_named(["pv1"]))
    assert verdict.passed
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid), "what the program started ends with it")


def is_running(pid: int) -> bool:
    """One that has ended and waits for init to notice does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    repository = Repository.at(repository_with(tmp_path / "program", "sleep 60"))
    with socket.create_server(("127.0.0.1", settings.port)):
        (verdict,) = ChallengeTester(repository, settings).run(cases_named(["vi6"]))
    assert "before the program is started" in verdict.findings[0]


def test_directories_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=somebody-elses\n")
    with pytest.raises(DirectoryInUseError):
        prepare(tmp_path, [])


def test_what_makes_a_repository(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"no your_program\.sh"):
        Repository.at(tmp_path)
    repository_with(tmp_path, "true")
    (tmp_path / "codecrafters.yml").write_text("debug: true  # all of it\n")
    assert Repository.at(tmp_path).is_debug
    (tmp_path / "codecrafters.yml").write_text("language_pack: python\n")
    with pytest.raises(ProgramError, match="neither debug: true nor debug: false"):
        Repository.at(tmp_path)
    (tmp_path / "codecrafters.yml").unlink()
    with pytest.raises(ProgramError, match=r"no codecrafters\.yml"):
        Repository.at(tmp_path)


def test_cases_as_the_environment_names_them() -> None:
    text = '[{"slug":"vi6","tester_log_prefix":"stage-1","title":"Stage #1: Bind"},{"slug":"ls8"}]'
    first, second = parse_cases(text)
    assert (first.stage.slug, first.prefix, first.title) == ("vi6", "stage-1", "Stage #1: Bind")
    assert (second.stage.slug, second.prefix) == ("ps7", "stage-ls8")
    for bad in ("{", '[{"title":"none"}]', '[{"slug":"zz9"}]', "7"):
        with pytest.raises(BadCasesError):
            parse_cases(bad)


def command_line(tmp_path: Path) -> list[str]:
    port, controller_port = free_ports()
    places = ("--port", str(port), "--controller-port", str(controller_port), "--log-dir", str(tmp_path / "logs"))
    return [COMMAND[0], "challenge", *places, "--properties", str(tmp_path / "server.properties")]


def run_command(tmp_path: Path, environment: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*command_line(tmp_path), *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_this_repository_passes(tmp_path: Path) -> None:
    """As the challenge runs it: your_program.sh of this repository, found by the environment."""
    done = run_command(tmp_path, {"CODECRAFTERS_REPOSITORY_DIR": str(ROOT)}, "--shared", "--format", "json")
    verdicts = {one["slug"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert [one for one in verdicts.values() if not one["passed"]] == []
    assert verdicts.keys() == {stage.slug for stage in STAGES}
    assert done.returncode == 0, done.stderr


def test_this_repository_passes_with_a_program_for_each_stage(tmp_path: Path) -> None:
    cases = json.dumps([{"slug": slug, "tester_log_prefix": f"stage-{slug}"} for slug in ("pv1", "vi6", "fd8", "ar4")])
    done = run_command(tmp_path, {"CODECRAFTERS_TEST_CASES_JSON": cases}, str(ROOT))
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == ["passed"] * 4
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_tester_that_is_stopped_leaves_nothing_either(number: signal.Signals, tmp_path: Path) -> None:
    directory = repository_with(tmp_path / "program", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    tester = subprocess.Popen([*command_line(tmp_path), str(directory), "-s", "vi6"], stderr=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program is started")
    tester.send_signal(number)
    assert tester.wait(20) == 128 + number
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid), "the program ends with the tester")


def test_a_failure_is_an_exit_code(tmp_path: Path) -> None:
    script = f"echo started; exec {sys.executable} {challenge_server.__file__} not_on_disk $1"
    directory = repository_with(tmp_path / "program", script)
    done = run_command(tmp_path, {}, str(directory), "-s", "ps7", "--seed", "1")
    assert done.returncode == 1
    assert "[stage-ps7] Produce one record: FAILED" in done.stdout
    assert "[stage-ps7] [your_program] started" in done.stdout
    assert "--seed 1" in done.stderr
