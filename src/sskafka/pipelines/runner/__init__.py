"""Running a pipeline: tables from topics, queries to sinks, dead letters, progress, and how a run ends."""
