"""A damaged part of a compacted log is replaced, in any order of writes, compactions, crashes and leader changes.

pytest tests/simulation/test_part_simulation.py                     200 interleavings
PART_SEEDS=20000 pytest tests/simulation/test_part_simulation.py    more of them
PART_SEED=123 pytest tests/simulation/test_part_simulation.py       one, exactly as it was
"""

import pytest
from part_run import run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("PART_", 200, 50), ids=name_of)
def test_readers_find_the_last_value_of_every_key(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)
