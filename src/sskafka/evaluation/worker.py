"""A process that puts one load on a cluster: `python -m sskafka.evaluation.worker`, its orders on standard input.

    in     the LoadSpec as one line of JSON; later any line: go
    out    {"ready": true}, then a Window a line, then {"done": true}, or {"error": "..."}

Waiting for "go" lets many of them begin at once.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from sskafka.evaluation.load import LoadSpec, open_load


async def work(spec: LoadSpec) -> None:
    async with AsyncExitStack() as stack:
        load = await open_load(spec, stack)
        tell({"ready": True})
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await load.run(lambda window: tell(window.to_json()))


def tell(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> int:
    spec = LoadSpec.from_json(json.loads(sys.stdin.readline()))
    try:
        asyncio.run(work(spec))
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # the boundary of the process: whoever started it is told
        tell({"error": str(error) or type(error).__name__})
        return 1
    tell({"done": True})
    return 0


if __name__ == "__main__":
    sys.exit(main())
