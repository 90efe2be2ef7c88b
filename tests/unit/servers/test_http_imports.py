"""The broker process does not import the modules of the HTTP server."""

import subprocess
import sys

MODULES = "sskafka.broker, sskafka.servers.http.supervisor, sskafka.servers.local.answers"
LOADED = f"import sys, {MODULES}; print(*sys.modules)"


def test_the_broker_imports_no_web_framework() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "starlette", "pydantic", "uvicorn"} & set(loaded)
