"""Transactions in a log: the `index` of aborted ones, markers, and the check that a transaction is open."""
