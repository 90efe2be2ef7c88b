"""The handlers of the APIs, one file for each family. Most receive decoded messages; `produce` and `fetch` read bytes.

Produce is in `produce` and, for requests that start a transaction, in `transactional_produce`. Fetch is in `fetch`.
"""
