"""The messages of Apache Kafka 4.3, one module per API, in the notation of `wire.schema`.

Structs have Kafka's names. If a request and its response have different structs of the same name, the names start with
`Request` and `Response`.
"""
