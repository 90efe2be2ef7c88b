"""The command line: `main` is its entry, `commands` finds the module of a command, which has the command's name.

What commands share: `connecting` (how they find a cluster), `options`, `output`, `failures` (what is said when
something goes wrong), `stop_signals`.
"""
