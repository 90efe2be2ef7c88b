"""Measure SSKafka alone (`sskafka`), compared with Apache Kafka (`compare`) or with another checkout of SSKafka
(`versions`), or a running broker (`attach`).

`--brokers 3` measures replicated writes to a cluster of that size instead of a single broker.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import Broker, BrokerKind, apache_kafka_kind, checkout_kind, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.generator import PROGRAM, LoadFailedError
from benchmarks.goals import beside_apache_kafka, beside_the_version_before
from benchmarks.machine import describe
from benchmarks.maven import ROOT, UnavailableError
from benchmarks.probe import NotReadyError
from benchmarks.report import markdown, plain_text, tables
from benchmarks.results import BrokerResult, as_json
from benchmarks.runner import measure_attached, measure_kinds, measure_tls
from benchmarks.scenarios import FULL, QUICK, REPLICATED_SCENARIOS, SCENARIOS, TLS_SCENARIOS, Extent, Scenario


def main() -> int:
    arguments = _parser().parse_args()
    if not PROGRAM.exists():
        print(f"{PROGRAM.relative_to(ROOT)} is not built: make load", file=sys.stderr)
        return 1
    known = REPLICATED_SCENARIOS if arguments.brokers > 1 else (*SCENARIOS, *TLS_SCENARIOS)
    scenarios = [scenario for scenario in known if scenario.key in arguments.scenarios]
    extent = QUICK if arguments.quick else FULL
    if arguments.rounds:
        extent = replace(extent, rounds=arguments.rounds)
    try:
        results = _measure(arguments, scenarios, extent)
    except (UnavailableError, NotReadyError, LoadFailedError) as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    _publish(arguments, results, scenarios, extent)
    return 0


def _parser() -> argparse.ArgumentParser:
    keys = [scenario.key for scenario in (*SCENARIOS, *TLS_SCENARIOS, *REPLICATED_SCENARIOS)]
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--quick", action="store_true", help="about a quarter of the time, less accurate")
    common.add_argument("--rounds", type=int, metavar="N", help="counted rounds; more of them for a noisy machine")
    common.add_argument("--scenarios", nargs="+", choices=keys, default=keys, metavar="KEY", help=", ".join(keys))
    common.add_argument(
        "--dir", type=Path, default=ROOT / "build" / "bench", help="directory for the logs of the brokers"
    )
    common.add_argument("--brokers", type=int, default=1, help="cluster size; above 1, writes are replicated")
    common.add_argument("--json", type=Path, help="write the results of all rounds to this file")
    common.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("sskafka", parents=[common], help="start SSKafka and measure it")
    modes.add_parser("compare", parents=[common], help="SSKafka and Apache Kafka, in alternating rounds")
    versions = modes.add_parser("versions", parents=[common], help="this checkout and another, in alternating rounds")
    versions.add_argument("--before", required=True, type=Path, metavar="DIR", help="the other checkout")
    attach = modes.add_parser("attach", parents=[common], help="measure a running broker")
    attach.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    attach.add_argument("--pid", required=True, type=int, help="process whose CPU time and memory are measured")
    attach.add_argument("--name", default="broker", help="heading of its column")
    return parser


def _measure(arguments: argparse.Namespace, scenarios: Sequence[Scenario], extent: Extent) -> list[BrokerResult]:
    plain = [scenario for scenario in scenarios if not scenario.tls]
    if arguments.mode == "attach":
        host, _, port = arguments.bootstrap.rpartition(":")
        return measure_attached(Broker(arguments.name, host, int(port), arguments.pid), plain, extent)
    kinds: list[BrokerKind] = [sskafka_kind()]
    if arguments.mode == "compare":
        kinds.append(apache_kafka_kind(resolve_kafka_libs()))
    if arguments.mode == "versions":
        kinds.append(checkout_kind(arguments.before.resolve()))
    if arguments.brokers > 1:
        kinds = [ClusterKind(kind, arguments.brokers) for kind in kinds]
    directory = arguments.dir / f"data-{os.getpid()}"
    results = [BrokerResult(kind.name) for kind in kinds]
    if plain:
        results = measure_kinds(kinds, plain, extent, directory)
    secured = [scenario for scenario in scenarios if scenario.tls]
    if secured:
        measure_tls(kinds, secured, extent, directory, results)
    return results


def _publish(
    arguments: argparse.Namespace, results: Sequence[BrokerResult], scenarios: Sequence[Scenario], extent: Extent
) -> None:
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    about = describe(
        f"{extent.rounds} rounds after {extent.warm_up_rounds} warm-up rounds, medians; ± is half the spread", command
    )
    about["date"] = time.strftime("%Y-%m-%d")
    goals = beside_the_version_before if arguments.mode == "versions" else beside_apache_kafka
    shown = tables(results, scenarios, os.cpu_count() or 1, goals)
    print(plain_text(shown, about), end="")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(shown, about))
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(results, about), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
