"""Kafka's wire protocol, as pure functions between bytes and values.

`schema` is the notation of messages and `messages/` contains the messages; `codec` encodes and decodes them with code
that `compiler` generates for each version. `apis` is the table of APIs, `header` the request and response headers.
`produce`, `fetch` and `fetch_response` are hand-written codecs for the hot path.
"""
