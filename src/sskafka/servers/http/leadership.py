"""The lab's leader is the active controller: it alone accepts what the others refuse with 421."""

from typing import Any

from fastapi import Depends

from sskafka.servers.http.door import Door
from sskafka.servers.http.problems import MISDIRECTED, Problem, documented

NOT_THE_LEADER = documented({MISDIRECTED: "Another broker leads; the detail names it."})


def leader_only(door: Door) -> Any:
    """A dependency that lets requests pass on the active controller alone."""

    async def check() -> None:
        if not door.leads:
            raise Problem(MISDIRECTED, f"leader is {door.leader_id}, can't accept")

    return Depends(check)
