"""`sskafka start --brokers-per-host N`: from the command line to the supervisor."""

import asyncio
from pathlib import Path

from sskafka.cli.broker_settings import AUTHORITY_FILE, home_of, load_settings
from sskafka.cli.host.directories import check_none_left_out
from sskafka.cli.host.members import plan_members
from sskafka.cli.host.process import StartCommand
from sskafka.cli.host.supervisor import HostSupervisor
from sskafka.cli.output import talk
from sskafka.cli.start import configure_logging, pid_file
from sskafka.cli.usage import UsageError
from sskafka.storage.disk import OsDisk


def run_brokers(file: Path | None, overrides: list[str], log_level: str, count: int) -> int:
    """Run the brokers of this machine until a signal stops them. Return the exit code."""
    if file is None and AUTHORITY_FILE.exists():
        raise UsageError("--brokers-per-host does not start a node that `start --secure` made; use cluster up --secure")
    machine = load_settings(file, overrides)
    configure_logging(log_level, machine)
    for warning in machine.warnings:
        talk(f"warning: {warning}")
    members = plan_members(machine, count, OsDisk())
    for idle in check_none_left_out(machine.data_directories, [member.node_id for member in members]):
        talk(f"broker {idle} of this machine holds no partitions and is not started")
        talk(f"  remove it from the cluster: sskafka cluster unregister {idle}")
    command = StartCommand(None if file is None else str(file), overrides, log_level)

    async def supervise() -> int:
        return await HostSupervisor(machine, members, command).run()

    with pid_file(home_of(file)):
        return asyncio.run(supervise())
