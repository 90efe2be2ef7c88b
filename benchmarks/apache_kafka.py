"""Apache Kafka for comparison: its jars (by Maven, from the pom beside this file), its tools by class name.

The jars are kept in `build/apache-kafka/` with the pom that they were resolved for; another pom resolves them again.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
POM = Path(__file__).with_name("apache-kafka.pom.xml")
CACHE = ROOT / "build" / "apache-kafka"
RESOLVE_SECONDS_MAX = 600
TOOL_SECONDS_MAX = 120

# What kafka-run-class gives every JVM, and kafka-server-start the broker.
PERFORMANCE_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
BROKER_HEAP = ("-Xmx1G", "-Xms1G")
# Tools live for a second or two: the cheap compiler and collector start faster and change nothing that they print.
TOOL_OPTIONS = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


class UnavailableError(Exception):
    """Apache Kafka cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class KafkaLibs:
    """A directory of jars, as a class path."""

    directory: Path

    def java(self, class_name: str, *arguments: str, options: tuple[str, ...] = TOOL_OPTIONS) -> list[str]:
        log_level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *options, log_level, "-cp", f"{self.directory}/*", class_name, *arguments]


def resolve_kafka_libs(pom: Path = POM, cache: Path = CACHE) -> KafkaLibs:
    """The jars of `pom`, from the cache or by Maven; raises UnavailableError with the reason."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")
    libs, resolved_for = cache / "libs", cache / "resolved.pom.xml"
    if not resolved_for.exists() or resolved_for.read_bytes() != pom.read_bytes():
        shutil.rmtree(cache, ignore_errors=True)
        _copy_dependencies(pom, libs)
        shutil.copyfile(pom, resolved_for)
    return KafkaLibs(libs)


def _copy_dependencies(pom: Path, libs: Path) -> None:
    libs.mkdir(parents=True)
    command = [
        "mvn",
        "--batch-mode",
        "--quiet",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={libs}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"mvn took longer than {RESOLVE_SECONDS_MAX} s") from error
    if done.returncode != 0:
        raise UnavailableError(f"mvn could not resolve Apache Kafka: {(done.stdout + done.stderr).strip()[:500]}")


def run_tool(
    libs: KafkaLibs, class_name: str, *arguments: str, stdin: str = "", seconds_max: float = TOOL_SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's tools to its end; the caller judges the exit code."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CLASSPATH", "JAVA_TOOL_OPTIONS"}}
    return subprocess.run(
        libs.java(class_name, *arguments),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
        env=environment,
    )
