"""Pipeline files: their models, the YAML format, and checks that do not need Spark."""
