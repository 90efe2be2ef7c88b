"""Which seeds a simulation runs: so many, or more, or one that failed; several to a test, which is how they are shared
out to processes."""

import os


def seed_groups(prefix: str, count: int, per_test: int) -> list[range]:
    """`count` seeds unless the environment says otherwise: `{prefix}SEEDS` how many, `{prefix}SEED` which one."""
    if f"{prefix}SEED" in os.environ:
        seed = int(os.environ[f"{prefix}SEED"])
        return [range(seed, seed + 1)]
    wanted = int(os.environ.get(f"{prefix}SEEDS", count))
    return [range(first, min(first + per_test, wanted)) for first in range(0, wanted, per_test)]


def name_of(seeds: range) -> str:
    return f"{seeds[0]}-{seeds[-1]}"
