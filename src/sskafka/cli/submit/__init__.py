"""The program for `spark-submit`, in its own directory: Python would import modules next to it as top-level modules."""
