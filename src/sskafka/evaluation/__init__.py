"""How fast a cluster is: load by many processes, over clusters of several sizes.

latencies.py    a histogram that processes can add up
load.py         one producer or consumer under measurement
worker.py       the process around it
workers.py      several of them, started together, and their sum
results.py      the rows that a run leaves: in a file, in a topic
local_cluster.py  a cluster for the time of a measurement
grid.py         partitions x brokers x replication
chart.py        the picture of it
"""
