"""Open logs after a clean or unclean shutdown: `opening` for one log, `pool` for many at once."""
