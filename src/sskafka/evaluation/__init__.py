"""Measure the performance of clusters of several sizes, with load from many processes.

latencies.py      a histogram that can be merged across processes
load.py           one measured producer or consumer
worker.py         the process that runs it
workers.py        several processes, started together, and their sum
results.py        the rows of a run, in a file and in a topic
grid.py           partitions x brokers x replication, each on a cluster of its own
chart.py          the chart of a grid
"""
