"""What has differences that are known and not mended yet, by the area it belongs to. The list only shrinks."""

PENDING = {"random": "malformed ACL, cursor and commit requests that random arguments make"}
