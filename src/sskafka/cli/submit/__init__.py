"""The program for `spark-submit`, alone in its directory: Python would find its neighbours as top-level modules."""
