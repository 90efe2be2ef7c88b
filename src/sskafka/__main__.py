"""`python -m sskafka` is the `sskafka` command."""

from sskafka.cli.main import run

run()
