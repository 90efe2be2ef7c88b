"""Run a command of `sskafka` in this process: a new process takes longer to start than most commands to end.

What a process adds, pipes, signals and its end, is tested in test_cli_topics.py and by the pages (test_page_blocks.py).
"""

from subprocess import CompletedProcess

from typer.testing import CliRunner

from sskafka.cli.commands import app


def run_sskafka(*arguments: str, stdin: str = "") -> CompletedProcess[str]:
    """Return the exit code and what was printed. Raise what a process would print as a traceback."""
    result = CliRunner().invoke(app, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)
