"""Bounds on what a message may contain. Decoders check them before they allocate anything.

Apache Kafka 4.4 has the first two. The third keeps the cost of a request in proportion to what clients need: an element
of a request may be a byte on the wire, but it costs hundreds of bytes and some microseconds to decode and to answer.
"""

ARRAY_ELEMENTS_MAX = 1_000_000
"""Maximum number of elements of one array."""
TAGGED_FIELDS_MAX = 10_000
"""Maximum number of tagged fields of one struct."""
REQUEST_ELEMENTS_MAX = 100_000
"""Maximum number of elements of all arrays of a request together, tagged fields included."""
FETCH_PARTITIONS_MAX = 20_000
"""Maximum number of topics and partitions of a Fetch request."""
PRODUCE_PARTITIONS_MAX = 10_000
"""Maximum number of topics and partitions of a Produce request."""
REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of requests that carry no records."""
