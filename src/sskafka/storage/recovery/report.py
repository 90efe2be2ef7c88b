"""Summary of opening a broker's logs: one line in place of one for each partition."""


class RecoveryReport:
    __slots__ = ("cut_logs", "logs", "verified_logs", "verified_segments")

    def __init__(self) -> None:
        self.logs = 0
        self.verified_logs = 0
        self.verified_segments = 0
        self.cut_logs = 0

    def add(self, verified_segments: int, was_cut: bool) -> None:
        """Count one more opened log."""
        self.logs += 1
        self.verified_logs += verified_segments > 0
        self.verified_segments += verified_segments
        self.cut_logs += was_cut

    def __str__(self) -> str:
        if not self.logs:
            return "no logs yet"
        opened = f"{self.logs} logs opened"
        if not self.verified_logs:
            return f"{opened}, none needed recovery"
        cut = f", {self.cut_logs} truncated at an invalid batch" if self.cut_logs else ""
        return f"{opened}, {self.verified_segments} segments of {self.verified_logs} verified{cut}"
