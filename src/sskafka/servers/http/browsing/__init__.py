"""Records for people: pages of them, searches through them, and what their bytes mean.

    filter_syntax.py, filter.py   the expressions of searches, parsed and evaluated; pure
    payloads.py                   bytes as text, JSON, Avro, Protobuf or base64; pure
    schemas.py, schema_files.py   schemas that a request has, and those in a directory of the broker
    pages.py                      a page of records, newest or oldest first, over partitions
    scan.py                       records in the order of the log: search, live tail, download

The routes in ../routes say who may ask and how much. Nothing here knows HTTP.
"""
