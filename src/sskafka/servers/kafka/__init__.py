"""The Kafka door: bytes from a socket to the handler of an API, and answers back in the order of the requests.

Start reading at `connection` (frames in, requests dispatched) and its other half `outgoing`; then `registry` (which
handler serves which API) and `request` (what a handler is given). A request that has to wait keeps a `response_slot`.
`api_tables` puts the handlers together; `handlers` has one file an API family. `authorization` decides who may do
what, `error_mapping` what clients are told when something goes wrong.
"""
