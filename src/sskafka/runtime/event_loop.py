"""The event loop that every process of a broker runs on."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed (the extra `fast`), the standard loop otherwise; the same code runs on both."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
