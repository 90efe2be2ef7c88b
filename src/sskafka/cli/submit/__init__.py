"""The program for `spark-submit`. It has its own directory, because Python would import its neighbours as top-level
modules.
"""
