"""Secrets in the settings of a session: Spark has them, other users of the machine do not see them."""

import subprocess
import sys

PROGRAM = """
from pathlib import Path
from sskafka.pipelines.session import SessionSettings, start_session, stop_session

conf = {"spark.hadoop.fs.s3a.secret.key": "hunter22", "spark.driver.memory": "600m"}
spark = start_session(SessionSettings("secrets", "local[1]", conf))
process = spark.sparkContext._gateway.proc.pid
print(Path(f"/proc/{process}/cmdline").read_text().replace("\\0", " "))
print("has", spark._jsc.hadoopConfiguration().get("fs.s3a.secret.key"))
stop_session()
"""


def test_the_command_line_of_java_contains_no_secret() -> None:
    """Java was started with all settings of the pipeline file as arguments."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=True)
    command, has = done.stdout.splitlines()[-2:]
    assert "java" in command
    assert "-Xmx600m" in command
    assert "hunter22" not in command
    assert has == "has hunter22"
