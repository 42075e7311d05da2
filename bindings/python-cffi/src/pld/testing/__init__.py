"""Golden tests of programs: inputs by rule, a reference in numpy, and a report of what differs.

    pld.testing.run(
        l3_allreduce,
        specs=[
            pld.testing.TensorSpec("inputs", [2, 1, 256], pld.f32, init="random"),
            pld.testing.TensorSpec("outputs", [2, 1, 256], pld.f32),
        ],
        golden=lambda tensors: tensors["outputs"].__setitem__(slice(None), tensors["inputs"].sum(axis=0)),
        ranks=2,
    )
"""

from pld.testing.bench import Benchmark, Figures, benchmark
from pld.testing.compare import Comparator, Comparison, allclose, compare, exact
from pld.testing.harness import Golden, MismatchError, Outcome, run
from pld.testing.ranks import RankDied
from pld.testing.specs import ScalarSpec, Spec, TensorSpec, to_dtype, to_numbers

__all__ = [
    "Benchmark",
    "Figures",
    "benchmark",
    "Comparator",
    "Comparison",
    "allclose",
    "compare",
    "exact",
    "Golden",
    "MismatchError",
    "Outcome",
    "run",
    "RankDied",
    "ScalarSpec",
    "Spec",
    "TensorSpec",
    "to_dtype",
    "to_numbers",
]
