"""The lab's leader is the active controller. Other brokers reject its requests with 421."""

from typing import Any

from fastapi import Depends

from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import MISDIRECTED, Problem, documented

NOT_THE_LEADER = documented({MISDIRECTED: "Another broker is the leader; the detail names it."})


def leader_only(context: HttpContext) -> Any:
    """Return a dependency that accepts requests only on the active controller."""

    async def check() -> None:
        if not context.leads:
            raise Problem(MISDIRECTED, f"leader is {context.leader_id}, can't accept")

    return Depends(check)
