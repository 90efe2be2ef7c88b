"""`sskafka cluster`: `commands` has its subcommands."""
