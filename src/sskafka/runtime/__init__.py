"""What the packages above run on: time, timers, turns of an event loop, threads and the tasks that a node owns.

`clock` and `timer_wheel` give time; `delayed_operation` waits for offsets or for a time to be over; `work_queue` and
`background` run work beside requests, on the loop or in threads; `tasks` owns asyncio tasks; `event_loop` makes loops
and `control_thread` runs one on a thread of its own. Nothing here knows what it runs.
"""
