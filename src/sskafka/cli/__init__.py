"""The command line. `main` is the entry point, `commands` finds the module of a command by name.

Commands share `connecting` (how they find a cluster), `options`, `output`, `failures` (error messages and hints),
`plain_help` (help texts and errors of options), `patterns` (globs of topics and groups) and `stop_signals`.
"""
