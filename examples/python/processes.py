"""The all-reduce between processes: each runs this script, and is one rank.

    for rank in 0 1; do PLD_RANK=$rank PLD_WORLD_SIZE=2 python examples/python/processes.py & done; wait
    mpirun -n 4 python examples/python/processes.py
"""

import numpy as np
from allreduce import SIZE, l3_allreduce

import pld


def main() -> None:
    with pld.World.join() as world:
        allreduce = world.compile(l3_allreduce)
        x = np.arange(SIZE, dtype=np.float32).reshape(1, SIZE) + 1000 * world.rank
        y = np.empty_like(x)
        allreduce(x, y)  # this rank's part: no leading rank axis
        others = 1000 * sum(range(world.nranks))
        np.testing.assert_array_equal(y, world.nranks * np.arange(SIZE, dtype=np.float32).reshape(1, SIZE) + others)
        print(f"rank {world.rank} of {world.nranks}: passed")


if __name__ == "__main__":
    main()
