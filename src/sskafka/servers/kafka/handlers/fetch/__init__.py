"""Fetch: `handler` (one request until its response), `readers` (reads for consumers and followers), and fetch sessions.

`sessions` has all fetch sessions of the broker; `session` and `follower_session` are the two kinds of a session.
"""
