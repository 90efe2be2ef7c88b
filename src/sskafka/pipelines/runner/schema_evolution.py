"""Columns that a table lacks: added if the sink has `evolve: true`, refused otherwise."""

from collections.abc import Sequence


class SchemaChangeError(Exception):
    """The rows have columns that the table lacks, and the sink does not allow to add them."""


def added_columns(table: str, known: Sequence[str], columns: Sequence[str], evolves: bool) -> list[str]:
    """Return the columns of the rows that the table lacks; columns that only the table has become null."""
    added = [name for name in columns if name not in known]
    if added and not evolves:
        raise SchemaChangeError(
            f"{table} has no column {', '.join(added)}; it has {', '.join(known)}. "
            "Set `evolve: true` in the sink to add new columns"
        )
    return added
