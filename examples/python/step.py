"""What the steps of the tutorial share. A step is a program and what it has to compute; it runs as

    python examples/python/01_hello_rank.py                           between 2 ranks, threads of this process
    python examples/python/01_hello_rank.py --ranks 4 --processes     between 4, a process each
    python examples/python/01_hello_rank.py --print                   its program as text
"""

import argparse
from typing import Any, Callable, Dict, Sequence

import numpy as np
import pld
import pld.testing


def readable(shape: Sequence[int]) -> Any:
    """An input in whose digits the hundreds are the rank, the tens the row, the ones the column."""
    rank, row, column = np.indices(shape)
    return 100 * rank + 10 * row + column


def main(program: pld.Program, **outputs: Callable[[Any], Any]) -> None:
    """Checks the program, launches it, and compares its outputs; each is a function of the program's first
    tensor, of all ranks at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    if options.print:
        print(program, end="")
        return

    specs = []
    for parameter in program.parameters(options.ranks):
        shape = [extent or 0 for extent in parameter.shape]  # with the number of ranks all are known
        init: Any = "zeros" if parameter.written else readable(shape)
        specs.append(pld.testing.TensorSpec(parameter.name, shape, parameter.dtype, init))

    def golden(tensors: Dict[str, Any]) -> None:
        for name, output in outputs.items():
            tensors[name][...] = output(tensors[specs[0].name])

    outcome = pld.testing.run(
        program,
        specs,
        golden,
        ranks=options.ranks,
        transport="processes" if options.processes else "threads",
        check={"schedules": 50},
    )
    for name in outputs:
        print(f"rank {options.ranks - 1} has {name} =\n{outcome.tensors[name][-1, :4, :4]}")
    print(outcome)
