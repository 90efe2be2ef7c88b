"""`sskafka log`: `commands` has its subcommands."""
