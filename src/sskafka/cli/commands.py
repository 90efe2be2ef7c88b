"""The commands of `sskafka`: find the module of a command by name and import only that module.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 something needs attention, 130 interrupted. A failure prints one
sentence and a hint; `--debug` adds the traceback.
"""

import os
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sskafka.cli.closed_output import closed_streams
from sskafka.cli.command_config import with_command_config
from sskafka.cli.output_aliases import with_output_aliases
from sskafka.cli.plain_help import meant_by, reworded, with_plain_help
from sskafka.cli.usage import UsageError
from sskafka.compiled import BUILD
from sskafka.model.version import __version__


class LazyCommand(NamedTuple):
    module: str
    help: str


# Each module has a Typer `app` for its command. The help texts are here so that `--help` need not import the modules.
COMMANDS = {
    "start": LazyCommand("sskafka.cli.start_command", "Run one broker in the foreground, or one for each core."),
    "cluster": LazyCommand(
        "sskafka.cli.cluster.commands", "Start brokers as one cluster; show its health; move partitions and leadership."
    ),
    "broker": LazyCommand(
        "sskafka.cli.broker.commands",
        "List, describe, drain and decommission brokers; check whether one is safe to stop.",
    ),
    "top": LazyCommand("sskafka.cli.top", "Show live rates by topic, group and client."),
    "topic": LazyCommand(
        "sskafka.cli.topic.commands", "Create, list, describe, alter, delete, produce to and consume topics."
    ),
    "transaction": LazyCommand("sskafka.cli.transaction", "List, describe and abort transactions."),
    "group": LazyCommand(
        "sskafka.cli.group.commands", "List, describe and delete groups; show lag and rebalances; reset offsets."
    ),
    "config": LazyCommand(
        "sskafka.cli.config", "Show, compare and change settings of topics, brokers, groups and client ids."
    ),
    "user": LazyCommand("sskafka.cli.user", "List, add and remove users (SCRAM credentials); set passwords."),
    "token": LazyCommand("sskafka.cli.token", "Create, list, renew and expire delegation tokens."),
    "acl": LazyCommand("sskafka.cli.acl", "List, add and remove ACLs, with the options of kafka-acls."),
    "cert": LazyCommand("sskafka.cli.cert", "Make and show certificates for TLS."),
    "quota": LazyCommand("sskafka.cli.quota", "List, set and remove quotas of users, client ids and IP addresses."),
    "metadata": LazyCommand(
        "sskafka.cli.metadata", "Show cluster metadata as ZooKeeper paths, and the metadata quorum."
    ),
    "log": LazyCommand("sskafka.cli.log.commands", "Dump, verify and repair the files of a log directory."),
    "storage": LazyCommand("sskafka.cli.storage", "Generate cluster ids and format log directories."),
    "challenge": LazyCommand("sskafka.cli.challenge", "Test a program that implements a Kafka broker, stage by stage."),
    "perf": LazyCommand("sskafka.cli.perf.commands", "Measure throughput and latency, also for a grid of clusters."),
    "pipeline": LazyCommand("sskafka.cli.pipeline.commands", "Run and manage data pipelines on Spark."),
    "demo": LazyCommand("sskafka.cli.demo", "Three brokers, a stream of clicks and a Spark pipeline, live."),
}


class PlainUsageError(typer.BadParameter):
    """A usage error whose message is a whole sentence: typer would put "Invalid value:" before it."""

    def format_message(self) -> str:
        return self.message


class LazyGroup(TyperGroup):
    """Loads commands from COMMANDS and reports their errors."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # the names are enough for "did you mean"

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = get_command(import_module(COMMANDS[cmd_name].module).app)
        with_plain_help(with_output_aliases(with_command_config(command)))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = reworded(error.message)
            raise
        except UsageError as error:
            raise PlainUsageError(str(error)) from error
        except Exception as error:
            if isinstance(error, BrokenPipeError) and closed_streams():
                _discard_output()
                raise typer.Exit(0) from error
            if (option := getattr(error, "option_name", None)) is not None:  # typer has this error, but not its name
                _add_hint(error, option)
                raise
            if ctx.params["debug"] or not _is_reported(error):
                raise
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=LazyGroup,
    help="Kafka for Python people: brokers that real Kafka clients use unchanged.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sskafka {__version__} ({BUILD})")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command. `debug` is read when a failure is reported."""


def _add_hint(error: Any, option: str) -> None:
    """Say what to use instead of an option that the command does not have."""
    if error.ctx is not None and (meant := meant_by(option, error.ctx.command)):
        error.message += f". Did you mean {meant}?"


def _is_reported(error: Exception) -> bool:
    """Print what an error means; return False for an error that needs a traceback."""
    try:
        return bool(import_module("sskafka.cli.failures").report(error))
    except BrokenPipeError:
        _discard_output()
        return True


def _discard_output() -> None:
    """Discard further output: its reader has closed it. Python would complain when it flushes the streams at exit."""
    for stream in closed_streams():
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
