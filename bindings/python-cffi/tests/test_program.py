"""Programs of text, and what is done with finished programs besides launching them."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT
from programs import shift, stuck

import pld

EXAMPLES = sorted((PROJECT / "examples" / "pld").glob("*.pld"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_read_and_printed(path: Path) -> None:
    program = pld.Program.load(path)
    assert str(pld.Program.parse(str(program))) == str(program)
    assert program.parameters(2) and program.graph()


def test_the_traced_exchange_is_that_of_the_text() -> None:
    from moe_dispatch_combine import moe_dispatch_combine

    assert str(moe_dispatch_combine) == str(pld.Program.load(PROJECT / "examples" / "pld" / "moe_dispatch_combine.pld"))


def test_mistakes_in_text_have_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "wrong.pld"
    path.write_text("program wrong\nentry e() {\n  at a { lod x }\n}\nhost () {}\n")
    with pytest.raises(pld.ParseError) as raised:
        pld.Program.load(path)
    found = raised.value.diagnostics[0]
    assert (found.file, found.line, found.severity) == (str(path), 3, "error")
    assert found.column > 1 and found.code.startswith("PLD-P") and "lod x" in found.text
    assert str(path) in str(raised.value)
    with pytest.raises(pld.VerifyError, match="PLD-V"):
        pld.Program.parse("program w\nentry e(x: tensor[1] i32 in) {\n  at a { x[0] = 1 }\n}\nhost () {}\n")


def test_warnings_are_kept() -> None:
    program = pld.Program.parse("program w\nentry e(x: window[1] i32) {\n  at a { wait x[0] >= 1 }\n}\nhost () {}\n")
    assert {w.code: w.severity for w in program.warnings} == {"PLD-V004": "warning", "PLD-V005": "warning"}


def test_parameters() -> None:
    xs, ys, plus = shift(8).parameters(3)
    assert (xs.name, xs.kind, xs.dtype, xs.direction, xs.sliced, xs.shape) == (
        "xs",
        "tensor",
        pld.i32,
        "in",
        True,
        (3, 1, 8),
    )
    assert (ys.direction, ys.written, xs.written) == ("out", True, False)
    assert (plus.name, plus.kind, plus.dtype, plus.shape) == ("plus", "scalar", pld.i32, ())
    assert shift(8).parameters()[0].shape == (None, 1, 8)


def test_graphs() -> None:
    from moe_dispatch_combine import moe_dispatch_combine

    assert re.search(r"place.*route", moe_dispatch_combine.graph(2))
    assert moe_dispatch_combine.graph(format="dot").startswith("digraph")
    with pytest.raises(ValueError, match="'svg' is none of 'text', 'dot'"):
        moe_dispatch_combine.graph(format="svg")  # type: ignore[arg-type]


def test_collectives_written_out() -> None:
    program = pld.Program.load(PROJECT / "examples" / "pld" / "host_collectives.pld")
    for ranks in (2, 3):
        written = program.expand(ranks, transport="shm", crowded=True, unchecked=True)
        assert "allreduce" in str(program) and "notify" in str(written)
        assert not re.search(r"^ *allreduce ", str(written), re.MULTILINE)
        written.check(ranks, schedules=20)
        on_hosts = program.expand(ranks, ranks_per_host=1)
        assert "_shards" in str(on_hosts) and "_shards" not in str(written)
        on_hosts.check(ranks, schedules=20)


def test_checks() -> None:
    report = shift(4).check(3, launches=2)
    assert report.complete and report.schedules >= 1 and report.steps > report.schedules
    x = np.arange(8, dtype=np.int32).reshape(2, 1, 4)
    limited = shift(4).check(2, explore="random", schedules=7, seed=3, args=[x, None, 5], fill="random", time_limit=20)
    assert limited.schedules <= 7
    with pytest.raises(pld.CheckError) as raised:
        stuck().check(2, args=[np.array([[1], [0]], np.int32)])
    found = raised.value.diagnostics[0]
    assert found.code.startswith("PLD-C") and found.schedule and found.file.endswith("programs.py")
    with pytest.raises(pld.CheckError):
        stuck().check(2, args=[np.array([[1], [0]], np.int32)], replay=found.schedule, memory="npu")
    with pytest.raises(pld.InvalidArgument):
        stuck().check(2, args=[np.zeros((2, 1), np.int32)] * 3)


def test_a_check_runs_functions_on_copies() -> None:
    threads, ranks = set(), set()

    def note(context: pld.TaskContext) -> None:
        threads.add(threading.get_ident())
        ranks.add(context.rank)
        context.tensors[0][0] = 9

    @pld.entry
    def entry(y: pld.Out[pld.Tensor[[1], pld.i32]]) -> None:
        pld.extern_task("note", pld.Out(y))

    @pld.host
    def noted(ys: pld.Out[pld.Tensor[[pld.WORLD, 1], pld.i32]]) -> None:
        for r in pld.ranks(pld.world_size()):
            entry(ys[r], device=r)

    ys = np.zeros((2, 1), np.int32)
    noted.check(2, args=[ys], functions={"note": note})
    assert ranks == {0, 1} and len(threads) == 1 and not ys.any()

    def failing(context: pld.TaskContext) -> None:
        raise KeyError("mine")

    with pytest.raises(pld.Error) as raised:
        noted.check(2, functions={"note": failing})
    assert "note" in str(raised.value)
