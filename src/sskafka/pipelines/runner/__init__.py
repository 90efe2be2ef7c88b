"""Runs of a pipeline: tables from topics, queries to sinks, dead letters, progress, and the end of a run."""
