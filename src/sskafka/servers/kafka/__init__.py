"""The Kafka server: bytes from a socket to the handler of an API, and answers back in the order of the requests.

Start reading at `connection` (frames in, requests dispatched) and its other half `outgoing`; then `registry` (binds the
rows of the API table in wire/apis.py to handlers) and `request` (what a handler is given). A request that has to wait
keeps a `response_slot`. `handlers` has one file an API family; broker/api_handlers.py constructs them. `authorization`
decides who may do what, `error_mapping` which error a client receives.
"""
