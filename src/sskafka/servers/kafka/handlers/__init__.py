"""What the APIs do, one file a family. Most handlers are given decoded messages; `produce` and `fetch` read bytes.

Produce: `produce`, and `transactional_produce` where a transaction begins. Fetch: `fetch` (one request until it is
answered), `fetch_readers` (consumers and followers), `fetch_sessions`, `fetch_session` and `follower_session` (what a
client need not name again).
"""
