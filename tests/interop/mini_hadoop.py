"""HDFS and YARN on free ports of this machine: Apache Hadoop's mini clusters, from Maven Central."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen
from xml.etree import ElementTree as ET

import pyspark
from benchmarks.maven import ROOT, resolve_jars
from waiting import wait_until

from sskafka.pipelines.java import find_java

HERE = Path(__file__).resolve().parent
POM = HERE / "mini-hadoop.pom.xml"
CACHE = ROOT / "build" / "mini-hadoop"
PROGRAM = HERE / "java" / "MiniHadoop.java"
FROM_SPARK = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "jcl-over-slf4j",
    "log4j-1.2-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "slf4j-api",
    "snappy-java",
)
JAVA_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
READY_WITHIN_S = 240
STOP_TIMEOUT_S = 30
HTTP_TIMEOUT_S = 60


class MiniHadoop(NamedTuple):
    configuration: Path
    """A directory, for HADOOP_CONF_DIR."""
    http: str
    """Address of WebHDFS."""

    @property
    def files(self) -> str:
        """The address of HDFS."""
        properties = ET.parse(self.configuration / "core-site.xml").getroot()
        found = {item.findtext("name"): item.findtext("value") for item in properties}
        return str(found["fs.defaultFS"])

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory of HDFS."""
        with urlopen(f"{self.http}/webhdfs/v1{directory}?op=LISTSTATUS", timeout=HTTP_TIMEOUT_S) as response:
            return [status["pathSuffix"] for status in json.load(response)["FileStatuses"]["FileStatus"]]

    def read(self, path: str) -> bytes:
        with urlopen(f"{self.http}/webhdfs/v1{path}?op=OPEN", timeout=HTTP_TIMEOUT_S) as response:
            return bytes(response.read())


@contextmanager
def mini_hadoop(directory: Path) -> Iterator[MiniHadoop]:
    """Run the cluster with its files and logs in `directory`; raise UnavailableError if there are no jars."""
    libs = resolve_jars(POM, CACHE)
    from_spark = Path(pyspark.__file__).parent / "jars"
    jars = [jar for name in FROM_SPARK for jar in from_spark.glob(f"{name}-[0-9]*.jar")]
    class_path = ":".join([f"{libs}/*", *map(str, jars)])
    command = [str(find_java().home / "bin" / "java"), *JAVA_OPTIONS, "-cp", class_path, str(PROGRAM), str(directory)]
    output, log = directory / "hadoop.out", directory / "hadoop.log"
    with output.open("wb") as talk, log.open("wb") as errors:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=talk, stderr=errors)
    try:
        wait_until(
            lambda: process.poll() is not None or "ready " in output.read_text(), "Hadoop is ready", READY_WITHIN_S
        )
        assert process.poll() is None, log.read_text()[-3_000:]
        yield MiniHadoop(directory, output.read_text().partition("ready ")[2].split()[0])
    finally:
        process.communicate(timeout=STOP_TIMEOUT_S)
