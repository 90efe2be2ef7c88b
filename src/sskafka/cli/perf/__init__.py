"""`sskafka perf`: `commands` has its subcommands."""
