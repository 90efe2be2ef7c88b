"""Kafka's wire protocol as pure functions between bytes and values.

`schema` is the notation and `messages/` the messages written in it; `codec` encodes and decodes them with code that
`compiler` makes for each version. `apis` is the table of APIs, `header` what precedes a message. `produce`, `fetch` and
`fetch_response` do the same by hand where every microsecond counts.
"""
