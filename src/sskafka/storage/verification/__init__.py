"""Check a log directory without changing it: start at `directory`. `repair` fixes what can be fixed without loss."""
