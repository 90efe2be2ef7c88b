"""Which partition of an internal topic keeps a key: the hash that Java's strings have, as every Kafka broker counts."""

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000


def java_hash(text: str) -> int:
    """String.hashCode: 31 * hash + each UTF-16 unit, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & _MASK
    return value - (1 << 32) if value & _SIGN else value


def partition_of(key: str, partition_count: int) -> int:
    """Kafka takes the absolute value, which for the smallest integer is 0."""
    value = java_hash(key)
    return (0 if value == -_SIGN else abs(value)) % partition_count
