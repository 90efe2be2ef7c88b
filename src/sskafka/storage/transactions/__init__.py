"""Transactions in a log: the `index` of aborted ones, the `marker`, and the `verification` of open transactions."""
