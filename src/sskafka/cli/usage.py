"""Usage errors that typer does not detect."""


class UsageError(Exception):
    """Ends a command with exit code 2."""
