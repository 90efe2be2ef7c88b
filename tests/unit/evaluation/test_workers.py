import asyncio
import subprocess
import sys

from sskafka.evaluation.workers import Worker


def test_a_worker_that_ends_by_itself_while_it_is_being_ended_is_no_error() -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "import sys; sys.stdin.read()"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

        def kill_too_late() -> None:
            raise ProcessLookupError

        process.kill = kill_too_late  # type: ignore[method-assign]
        await asyncio.wait_for(Worker(process).end(), 20)
        assert process.returncode == 0

    asyncio.run(scenario())
