"""What the APIs do, one file a family. Most handlers are given decoded messages; `produce` and `fetch` read bytes.

Produce: `produce`, and `transactional_produce` where a transaction begins. Fetch is a folder of its own, `fetch`.
"""
