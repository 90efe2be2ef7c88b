"""Opening logs after a clean or unclean stop: `opening` for one log, `pool` for many at once."""
