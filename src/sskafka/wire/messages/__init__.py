"""The messages of Apache Kafka 4.3, one module an API, in the notation of `wire.schema`.

Structs keep Kafka's names. Where a request and its response have different structs of one name, these begin with
`Request` and `Response`.
"""
