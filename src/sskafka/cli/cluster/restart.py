"""`sskafka cluster restart`: restart the brokers of a local cluster one by one, while clients work.

Before a broker stops, its stop must be safe: every partition keeps enough in-sync replicas, and the quorum its
majority. Before the next broker stops, the restarted one must be in sync again. The controller is restarted last, so
that leadership of the quorum moves only once. A broker that `cluster up` supervises is started again by that process,
which finds the file `restart` in the broker's home; other brokers are started by this command.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from sskafka.cli.broker.safe_to_stop import tell, until_safe
from sskafka.cli.cluster.homes import BrokerHome, LocalCluster, find_cluster, is_running
from sskafka.cli.cluster.ports import HOST, KAFKA
from sskafka.cli.cluster.up import DEFAULT_BROKERS, DEFAULT_DIRECTORY
from sskafka.cli.connecting import BootstrapOption, PropertiesOption, client_properties, connected, run
from sskafka.cli.failures import CommandError
from sskafka.cli.options import DryRunOption
from sskafka.cli.output import talk
from sskafka.client.balance.reading import read_layout
from sskafka.client.cluster import Cluster
from sskafka.model.properties import parse_properties

CLIENT_PROPERTIES = "client.properties"
_POLL_S = 0.1


def restart(
    directory: Annotated[
        Path, typer.Option("--dir", help="Data directory of the cluster: the --dir of its `cluster up`.")
    ] = DEFAULT_DIRECTORY,
    rolling: Annotated[bool, typer.Option("--rolling", hidden=True)] = True,
    brokers: Annotated[
        list[int] | None, typer.Option("--broker", help="Only these brokers. Repeatable.", show_default=False)
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, metavar="SECONDS", help="How long a broker may take until it can stop, or is in sync."
        ),
    ] = 600.0,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = "",
    properties: PropertiesOption = None,
) -> None:
    """Restart brokers of this machine one by one, each when that is safe; wait until it is in sync again."""
    local = find_cluster(directory, None, DEFAULT_BROKERS)
    if local.is_new:
        raise CommandError(f"there is no cluster in {directory}", "--dir names another directory")
    unknown = set(brokers or ()) - set(local.node_ids)
    if unknown:
        known = ", ".join(map(str, local.node_ids))
        raise CommandError(f"there is no broker {min(unknown)} in {directory}", f"the brokers are {known}")
    bootstrap = bootstrap or ",".join(f"{HOST}:{KAFKA.port_in(home.read_properties())}" for home in local.homes)
    client = {**_login(local.directory), **client_properties(properties)}

    async def work() -> int:
        async with connected(bootstrap, client) as cluster:
            homes = await _in_order(cluster, local, brokers)
            for home in homes:
                await _restart(cluster, local, home, wait, dry_run=dry_run)
            return len(homes)

    count = run(work())
    talk(
        "dry run: nothing was changed"
        if dry_run
        else f"restarted {count} broker{'' if count == 1 else 's'}; all replicas are in sync"
    )


def _login(directory: Path) -> dict[str, str]:
    """Return the client properties of a secure cluster."""
    try:
        found = parse_properties((directory / CLIENT_PROPERTIES).read_text())
    except FileNotFoundError:
        return {}
    found.pop("bootstrap.servers", None)
    return found


async def _in_order(cluster: Cluster, local: LocalCluster, chosen: list[int] | None) -> list[BrokerHome]:
    """Return the homes of the chosen brokers, that of the controller last.

    None: all that are registered or run. A broker that was decommissioned has a home, but is neither."""
    controller = (await cluster.refresh()).controller_id
    registered = (await cluster.retrying(lambda: read_layout(cluster))).brokers
    homes = [home for home in local.homes if not chosen or home.node_id in chosen]
    for home in [home for home in homes if not chosen and home.node_id not in registered and home.pid() is None]:
        talk(f"broker {home.node_id} is skipped: it is not registered and does not run")
        homes.remove(home)
    return sorted(homes, key=lambda home: (home.node_id == controller, home.node_id))


async def _restart(cluster: Cluster, local: LocalCluster, home: BrokerHome, wait_s: float, *, dry_run: bool) -> None:
    node_id = home.node_id
    risks = await until_safe(cluster, node_id, 0 if dry_run else wait_s)
    if risks:
        tell(node_id, risks)
        if not dry_run:
            raise CommandError(
                f"broker {node_id} could not be stopped safely within {wait_s:g} s",
                "`sskafka cluster status` shows what is wrong; brokers that were restarted stay as they are",
            )
    if dry_run:
        talk(f"broker {node_id} would be restarted")
        return
    began = monotonic()
    await _stop_and_start(local, home, wait_s)
    talk(f"broker {node_id} has started again; waiting until it is in sync")
    await _until_in_sync(cluster, node_id, began + wait_s)
    talk(f"broker {node_id} is in sync after {monotonic() - began:.1f} s")


async def _stop_and_start(local: LocalCluster, home: BrokerHome, wait_s: float) -> None:
    pid = home.pid()
    if pid is None:
        raise CommandError(f"broker {home.node_id} does not run", f"`sskafka start {home.properties_file}` starts it")
    is_supervised = is_running(local.supervisor_pid())
    if is_supervised:
        home.restart_file.touch()
    os.kill(pid, signal.SIGTERM)
    deadline = monotonic() + wait_s
    while is_running(pid):
        if monotonic() > deadline:
            home.restart_file.unlink(missing_ok=True)
            raise CommandError(f"broker {home.node_id} does not stop", f"its log: {home.log_file}")
        await asyncio.sleep(_POLL_S)
    if not is_supervised:
        _start(home)
    while home.pid() in {None, pid}:
        if monotonic() > deadline:
            raise CommandError(f"broker {home.node_id} does not start", f"its log: {home.log_file}")
        await asyncio.sleep(_POLL_S)


def _start(home: BrokerHome) -> None:
    with home.log_file.open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "sskafka", "start", str(home.properties_file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


async def _until_in_sync(cluster: Cluster, node_id: int, deadline: float) -> None:
    """Return when the broker is registered and in sync with all its partitions."""
    while True:
        layout = await cluster.retrying(lambda: read_layout(cluster))
        site = layout.brokers.get(node_id)
        behind = [one.partition for one in layout.partitions if node_id in one.replicas and node_id not in one.isr]
        if site is not None and site.is_live and not behind:
            return
        if monotonic() > deadline:
            raise CommandError(
                f"broker {node_id} is not in sync with {len(behind)} partitions",
                "`sskafka topic describe --under-replicated` shows them; the other brokers were not restarted",
            )
        await asyncio.sleep(_POLL_S)
