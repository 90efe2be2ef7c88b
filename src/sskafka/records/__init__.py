"""Record batches: the bytes that producers send, logs store and consumers fetch.

`batch` reads and patches batch headers in place, `record` decodes records, `builder` builds batches, `compression` has
the codecs, `control` the control records that brokers write, and `legacy` the message formats before format 2.
"""
