"""Pages of long lists, by name: the first page of a cluster with 10,000 topics is as small as that of any other."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Path, Query

from sskafka.servers.http.context import at_most

PAGE_MAX = 10_000
NAME_MAX = 249

Name = Annotated[str, Path(min_length=1, max_length=NAME_MAX)]
Search = Annotated[str, Query(max_length=NAME_MAX, description="Only names that contain this text.")]
After = Annotated[str, Query(max_length=NAME_MAX, description="Only names that sort after this one.")]
Limit = Annotated[int, Query(ge=1, description=f"At most {PAGE_MAX}."), at_most(PAGE_MAX)]


def page(names: Iterable[str], search: str, after: str, limit: int) -> tuple[list[str], str | None]:
    """Return the names of a page, and the last of them if there is another page."""
    found = sorted(name for name in names if name > after and search in name)
    return found[:limit], found[limit - 1] if len(found) > limit else None
