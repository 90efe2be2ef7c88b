"""Columns that a table lacks: added where the sink says `evolve: true`, refused with a sentence elsewhere."""

from collections.abc import Sequence


class SchemaChangeError(Exception):
    """The rows have columns that the table does not have, and nobody allowed to add them."""


def added_columns(table: str, known: Sequence[str], given: Sequence[str], evolves: bool) -> list[str]:
    """Return the columns of the rows that the table lacks; columns that only the table has become null."""
    added = [name for name in given if name not in known]
    if added and not evolves:
        raise SchemaChangeError(
            f"{table} has no column {', '.join(added)}; it has {', '.join(known)}. "
            "`evolve: true` of the sink adds new columns"
        )
    return added
