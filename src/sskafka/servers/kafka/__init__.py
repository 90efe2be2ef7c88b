"""The Kafka server: bytes from a socket to the handler of an API, and responses in the order of the requests.

Start reading at `connection` (frames in, requests dispatched) and its other half `outgoing`; then `registry` (binds the
rows of the API table in wire/apis.py to handlers) and `request` (the argument of handlers). A request that has to wait
keeps a `response_slot`. `handlers` has a file for each API family; broker/api_handlers.py makes them. `authorization`
decides who may do what, `error_mapping` which error a client receives.
"""
