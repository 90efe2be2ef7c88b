"""What is wrong with a command line, where typer does not see it."""


class UsageError(Exception):
    """Ends a command with exit code 2."""
