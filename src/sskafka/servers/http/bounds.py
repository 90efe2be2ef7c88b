"""Numbers in requests that the server limits."""

from pydantic import AfterValidator


def at_most(limit: int) -> AfterValidator:
    """Lower a larger number to `limit`: a request for more gets as much as the server allows."""
    return AfterValidator(lambda number: min(number, limit))
