"""What became of the transactions that a broker has coordinated."""


class TransactionCounters:
    __slots__ = ("aborted", "committed", "timed_out")

    def __init__(self) -> None:
        self.committed = 0
        self.aborted = 0
        self.timed_out = 0
        """Aborted because they were open for too long; among `aborted` once their markers are written."""
