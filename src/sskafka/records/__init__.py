"""Record batches, the bytes that producers send, logs keep and consumers get.

`batch` is the header, read and patched in place; `record` decodes what is inside and `builder` makes batches.
`compression` has the codecs, `control` the records that brokers write, `legacy` the formats before.
"""
