"""`sskafka broker safe-to-stop`: for scripts that restart brokers one by one, under systemd or Kubernetes."""

import asyncio
from typing import Annotated

import typer

from sskafka.cli.broker.describe import BrokerArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
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

    async def work() -> list[StopRisk]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await until_safe(cluster, broker_id, wait or 0)

    risks = run(work())
    if output.is_data:
        print_data(output, {"broker": broker_id, "safe": not risks, "risks": [_risk_json(risk) for risk in risks]})
    else:
        tell(broker_id, risks)
    if risks:
        raise typer.Exit(NOT_SAFE)


async def until_safe(cluster: Cluster, broker_id: int, wait_s: float) -> list[StopRisk]:
    """Return the risks that are left after at most so many seconds: none as soon as it is safe."""
    deadline_ms = cluster.deadline_ms(int(wait_s * 1000))
    while True:
        risks = await read_stop_risks(cluster, broker_id)
        if not risks or cluster.clock.monotonic_ms() >= deadline_ms:
            return risks
        await asyncio.sleep(_POLL_S)


def tell(broker_id: int, risks: list[StopRisk]) -> None:
    if not risks:
        talk(f"broker {broker_id} may stop")
        return
    talk(f"broker {broker_id} must not stop now:")
    for risk in risks[:NAMED_MAX]:
        talk(f"  {risk.partition or 'quorum'}: {risk.text}")
    if len(risks) > NAMED_MAX:
        talk(f"  and {len(risks) - NAMED_MAX} more; --output json shows all")


def _risk_json(risk: StopRisk) -> dict[str, str | None]:
    return {"partition": None if risk.partition is None else str(risk.partition), "text": risk.text}
