"""`sskafka topic`: `commands` has its subcommands."""
