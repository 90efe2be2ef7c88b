"""Clocks, timers, event loops, threads and tasks for the packages above.

`clock` and `timer_wheel` provide time; `delayed_operation` waits for offsets or a timeout; `work_queue` and
`background` run work beside requests, on the event loop or in threads; `tasks` owns asyncio tasks; `event_loop` creates
event loops and `control_thread` runs one on its own thread. Nothing here knows what it runs.
"""
