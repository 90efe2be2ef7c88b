"""Fetch: `handler` (one request until it is answered), `readers` (consumers and followers), and the fetch sessions.

`sessions` keeps what clients need not name again, `session` and `follower_session` what one of them reads.
"""
