"""Partitions: their image, changes of it, and new partitions of a topic."""
