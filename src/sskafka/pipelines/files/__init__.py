"""Pipelines as files: the model, the YAML form of it, and the checks that need no Spark."""
