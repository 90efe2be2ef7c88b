"""The last quarter of an hour of the cluster, for charts that do not begin when their page is opened.

rates.py      points of a chart from two samples of the brokers' counters; pure
series.py     the points that are kept, within bounds; pure
sampler.py    takes the samples while the HTTP process runs
"""
