"""`sskafka broker safe-to-stop`: for scripts that restart brokers one by one, under systemd or Kubernetes."""

import asyncio
from typing import Annotated

import typer

from sskafka.cli.completion import BrokerArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    run_on_cluster,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, talk
from sskafka.client.balance.reading import read_stop_risks
from sskafka.client.balance.safety import StopRisk
from sskafka.client.cluster import Cluster

NOT_SAFE = 3
NAMED_MAX = 5
_POLL_S = 0.5


def safe_to_stop(
    broker_id: BrokerArgument,
    wait: Annotated[
        float | None, typer.Option("--wait", min=0, metavar="SECONDS", help="Wait up to this time until it is safe.")
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Check whether a broker may stop without clients noticing: exit code 0 if so, 3 if not."""

    risks = run_on_cluster(bootstrap, properties, lambda cluster: until_safe(cluster, broker_id, wait or 0))
    if output.is_data:
        print_data(output, {"broker": broker_id, "safe": not risks, "risks": [_risk_json(risk) for risk in risks]})
    else:
        tell(broker_id, risks)
    if risks:
        raise typer.Exit(NOT_SAFE)


async def until_safe(cluster: Cluster, broker_id: int, wait_s: float) -> list[StopRisk]:
    """Wait up to `wait_s` seconds until the broker can stop safely. Return the risks that remain; none if it can."""
    deadline_ms = cluster.deadline_ms(int(wait_s * 1000))
    while True:
        risks = await read_stop_risks(cluster, broker_id)
        if not risks or cluster.clock.monotonic_ms() >= deadline_ms:
            return risks
        await asyncio.sleep(_POLL_S)


def tell(broker_id: int, risks: list[StopRisk]) -> None:
    if not risks:
        talk(f"broker {broker_id} is safe to stop")
        return
    talk(f"broker {broker_id} is not safe to stop:")
    for risk in risks[:NAMED_MAX]:
        talk(f"  {risk.partition or 'quorum'}: {risk.text}")
    if len(risks) > NAMED_MAX:
        talk(f"  and {len(risks) - NAMED_MAX} more; --output json shows all")


def _risk_json(risk: StopRisk) -> dict[str, str | None]:
    return {"partition": None if risk.partition is None else str(risk.partition), "text": risk.text}
