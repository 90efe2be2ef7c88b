"""Which archive of classes Java uses, and when it creates one."""

import os
from pathlib import Path

import pytest

from sskafka.pipelines import class_archive
from sskafka.pipelines.class_archive import TRAINING, ClassArchiveError, archive_of, create, java_options
from sskafka.pipelines.java import Java
from sskafka.pipelines.session import JAVA_OPTIONS, SessionSettings, prepare_environment

VARIABLES = ("SPARK_CONF_DIR", "LOG4J_CONFIGURATION_FILE", "SPARK_LOCAL_IP", "JAVA_HOME", "SSKAFKA_SPARK_LOG")


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (*VARIABLES, "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", JAVA_OPTIONS, TRAINING):
        monkeypatch.setenv(name, "")  # so that what a test sets is taken back
        monkeypatch.delenv(name)
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "bin" / "java").touch()
    return Java(tmp_path / "jdk", 17, "test")


def test_an_archive_is_used_only_if_it_exists(java: Java) -> None:
    assert java_options(java) == ""
    archive = archive_of(java)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in java_options(java)


def test_another_spark_or_another_java_has_another_archive(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    first = archive_of(java)
    assert archive_of(java) == first
    os.utime(java.home / "bin" / "java", (1, 1))
    second = archive_of(java)
    monkeypatch.setattr(class_archive.metadata, "version", lambda _: "9.9.9")
    assert len({first, second, archive_of(java)}) == 3


def test_java_gets_the_options_once_beside_those_of_the_user(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_OPTIONS, "-Dmine=1")
    monkeypatch.setenv(TRAINING, "made.jsa")
    for _ in range(2):
        prepare_environment(java, SessionSettings(master="local[2]"))
    assert os.environ[JAVA_OPTIONS].startswith("-Dmine=1 -XX:ArchiveClassesAtExit=made.jsa")
    assert os.environ[JAVA_OPTIONS].count("made.jsa") == 1
    assert not Path(os.environ["SPARK_CONF_DIR"]).exists(), "Java refuses archives if a directory is on its class path"
    assert Path(os.environ["LOG4J_CONFIGURATION_FILE"]).is_file()


def test_settings_of_the_user_are_left_alone(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    monkeypatch.setenv(TRAINING, "made.jsa")
    prepare_environment(java, SessionSettings(master="local[2]"))
    assert os.environ["SPARK_CONF_DIR"] == "/etc/spark"
    assert JAVA_OPTIONS not in os.environ
    assert "LOG4J_CONFIGURATION_FILE" not in os.environ


def test_a_java_that_writes_no_archive_is_named(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(ClassArchiveError, match="jdk cannot store classes"):
        create(java)


def test_what_java_writes_becomes_the_archive(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive.subprocess, "run", lambda *_, env, **__: Path(env[TRAINING]).write_text("made"))
    assert create(java) == archive_of(java)
    assert archive_of(java).read_text() == "made"
    assert list(archive_of(java).parent.iterdir()) == [archive_of(java)]
