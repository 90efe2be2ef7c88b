"""`sskafka group`: `commands` has its subcommands."""
