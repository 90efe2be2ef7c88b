"""Apache Kafka for comparison: its jars (resolved by Maven from the pom in this directory) and its tools."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.maven import ROOT, resolve_jars

POM = Path(__file__).with_name("apache-kafka.pom.xml")
CACHE = ROOT / "build" / "apache-kafka"
TOOL_SECONDS_MAX = 120

# JVM options of kafka-run-class, and of kafka-server-start for the broker.
PERFORMANCE_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
BROKER_HEAP = ("-Xmx1G", "-Xms1G")
# Tools run for a second or two: the C1 compiler and the serial collector start faster and do not affect the output.
TOOL_OPTIONS = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class KafkaLibs:
    """A directory of jars, as a class path."""

    directory: Path

    def java(self, class_name: str, *arguments: str, options: tuple[str, ...] = TOOL_OPTIONS) -> list[str]:
        log_level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *options, log_level, "-cp", f"{self.directory}/*", class_name, *arguments]


def resolve_kafka_libs(pom: Path = POM, cache: Path = CACHE) -> KafkaLibs:
    """Return the jars of `pom`; raise UnavailableError with the reason if they cannot be resolved."""
    return KafkaLibs(resolve_jars(pom, cache))


def run_tool(
    libs: KafkaLibs, class_name: str, *arguments: str, stdin: str = "", seconds_max: float = TOOL_SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools until it exits; the caller checks the exit code."""
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
