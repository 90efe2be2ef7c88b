"""Check the files that deploy SSKafka against the schemas of the programs that read them: `make deploy-test`.

Kubernetes: kubernetes-validate, which has the schemas. systemd: systemd-analyze, where there is one. Dockerfile:
hadolint. What brokers make of the settings in these files, tests/integration/test_deploy_files.py checks.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

DEPLOY = Path(__file__).resolve().parent
HADOLINT_IGNORED = ("DL3008", "DL3042")  # versions of gcc and pip's cache: both stay in the first stage


def check_kubernetes() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    print("kubernetes.yaml:", ", ".join(document["kind"] for document in documents))


def check_systemd() -> None:
    if shutil.which("systemd-analyze") is None:
        print("sskafka.service: not checked, because there is no systemd-analyze")
        return
    unit = str(DEPLOY / "sskafka.service")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "sskafka.service" in line and "is not executable" not in line]
    if said:
        sys.exit("\n".join(said))
    print("sskafka.service: verified")


def check_dockerfile() -> None:
    program = Path(sys.executable).with_name("hadolint")
    ignored = [word for rule in HADOLINT_IGNORED for word in ("--ignore", rule)]
    command = [program, "--failure-threshold", "warning", *ignored, DEPLOY.parent / "Dockerfile"]
    subprocess.run(command, check=True)
    print("Dockerfile: clean")


if __name__ == "__main__":
    check_kubernetes()
    check_systemd()
    check_dockerfile()
