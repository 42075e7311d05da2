"""Ranks that are cards: simulated ones, in a process that finds them in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROJECT

import pld

TOLD = """
program told
entry e(x: tensor[1, 8] i32 in, y: tensor[1, 8] i32 out, w: window[1, 8] i32, arrived: window[1] i32, me: i32, times: i32) {
  at e {
    next = (me + 1) % world
    put w[0, 0] @next <- x[0, 0] [1, 8]
    notify arrived[0] @next += 1
    wait arrived[0] >= times
    get y[0, 0] <- w[0, 0] @me [1, 8]
  }
}
host (xs: tensor[world, 1, 8] i32 in, ys: tensor[world, 1, 8] i32 out, times: i32) {
  w_buf = alloc_window [1, 8] i32
  arrived_buf = alloc_window [1] i32
  ranks r in 0..world {
    w = window w_buf [1, 8] i32
    arrived = window arrived_buf [1] i32
    dispatch e(xs[r], ys[r], w, arrived, r, times) device r
  }
}
"""

SEVERAL = """
import numpy as np
import pld
with pld.World(3, cards=pld.Cards(devices=[4, 0, 2])) as world:
    exe = world.compile(pld.Program.parse(TOLD, "told.pld"))
    xs, ys = (world.resident_stacked([1, 8], pld.i32) for _ in range(2))
    for rank in range(3):
        xs.copy_in(np.arange(8, dtype=np.int32).reshape(1, 8) + 100 * rank, rank)
    for launch in range(3):
        exe(xs, ys, 1)
        for rank in range(3):
            expected = np.arange(8, dtype=np.int32) + 100 * ((rank + 2) % 3)
            assert (ys.copy_out(rank=rank) == expected).all(), (launch, rank)
    try:
        exe.launch_on(0, xs, ys, 1)
    except pld.Unsupported as error:
        assert "several cards" in str(error)
    else:
        raise AssertionError("a stream belongs to one card")
    exe.close()
print("right")
"""

STREAM = """
import numpy as np
import pld
with pld.World.join(1, 0, exchange=lambda mine: [mine], cards=pld.Cards(devices=[1])) as world:
    exe = world.compile(pld.Program.parse(TOLD, "told.pld"), persistent=True)
    x, y = (world.resident([1, 8], pld.i32) for _ in range(2))
    for launch in range(1, 6):
        x.copy_in(np.arange(8, dtype=np.int32).reshape(1, 8) * launch)
        exe.launch_on(0, x, y, launch)
        assert (y.copy_out() == np.arange(8) * launch).all(), launch
    host = np.zeros((1, 8), dtype=np.int32)
    for array in (host, pld.DeviceArray(host.ctypes.data, pld.i32, host.shape)):
        try:
            exe(x, array, 6)
        except pld.InvalidArgument as error:
            assert "memory of the host" in str(error)
        else:
            raise AssertionError("memory of the host is no card's")
    exe.close()
print("right")
"""


@pytest.fixture(scope="module")
def toolkit() -> Path:
    """The simulated CANN."""
    home = PROJECT / "target" / "cann_sim"
    subprocess.run([PROJECT / "tests" / "cann_sim" / "toolkit.sh", home], check=True, timeout=300)
    return home


@pytest.mark.parametrize("script", [SEVERAL, STREAM], ids=["several", "stream"])
def test_cards(script: str, toolkit: Path) -> None:
    cache = PROJECT / "target" / "kernels"
    environment = {**os.environ, "ASCEND_HOME_PATH": str(toolkit), "PLD_KERNEL_CACHE": str(cache)}
    code = f"TOLD = {TOLD!r}\n{script}"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "right\n", ran.stderr


def test_a_machine_without_cann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    code = "import pld\ntry:\n    pld.World(2, cards=pld.Cards())\nexcept pld.Unavailable as e:\n    print(e)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "/nowhere" in ran.stdout, ran.stderr


def test_a_world_of_threads_has_no_streams() -> None:
    with (
        pld.World(1) as world,
        world.compile(pld.Program.parse("program nothing\nhost () {\n}\n", "nothing.pld")) as exe,
    ):
        with pytest.raises(pld.Unsupported, match="no cards"):
            exe.launch_on(0)
