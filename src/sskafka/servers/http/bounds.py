"""Numbers that a caller may choose freely and that the server keeps within its own limits."""

from pydantic import AfterValidator


def at_most(limit: int) -> AfterValidator:
    """Lower a larger number to `limit`: whoever asks for more than the server gives gets as much as it gives."""
    return AfterValidator(lambda number: min(number, limit))
