"""Damage to bytes, as a fuzzer does it: flips, cuts, repetitions, and numbers that lie."""

from random import Random

LIES = (
    b"\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x08",
    b"\x00",
    b"\x01",
    b"\xff\xff\xff\xff\x0f",
)


def mutated(random: Random, content: bytes, other: bytes, first: int) -> bytes:
    """Return the content with one to four kinds of damage, none before position `first`."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        if len(data) <= first:
            break
        at = random.randrange(first, len(data))
        match random.randrange(7):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = random.randbytes(random.randint(1, 8))
            case 3:
                del data[at : at + random.randint(1, 8)]
            case 4:
                lie = random.choice(LIES)
                data[at : at + len(lie)] = lie
            case 5:
                data[at:at] = data[at : at + random.randint(1, 64)] * random.randint(1, 4)
            case _:
                start = random.randrange(len(other)) if other else 0
                data[at:] = other[start:]
    return bytes(data)
