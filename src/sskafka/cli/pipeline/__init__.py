"""`sskafka pipeline`: `commands` has its subcommands."""
