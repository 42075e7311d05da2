"""Worlds: threads, processes, failures, other threads of Python, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest
from programs import shift, stuck

import pld

TESTS = Path(__file__).parent
SIZE = 5


def rows(rank: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
    return np.arange(SIZE, dtype=np.int32).reshape(1, SIZE) + 1000 * rank


def go(*values: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
    return np.array(values, np.int32).reshape(-1, 1)


class Script:
    """A Python process that runs a script; it says what it does line by line."""

    def __init__(self, script: str, **environment: str) -> None:
        path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def rest(self, exit_code: int = 0) -> str:
        assert self.process.stdout
        output = self.process.stdout.read()
        assert self.process.wait() == exit_code, output
        return output.strip()


@pytest.fixture
def scripts() -> Any:
    """Scripts that are ended with the test."""
    started: List[Script] = []

    def start(script: str, **environment: str) -> Script:
        started.append(Script(script, **environment))
        return started[-1]

    yield start
    for script in started:
        script.process.kill()
        script.process.wait()


def test_a_world_of_threads() -> None:
    with pld.World(3, cores_per_rank=2, wait="yield", chaos_seed=5) as world:
        assert (world.nranks, world.rank, world.error) == (3, -1, None)
        x, y = np.stack([rows(r) for r in range(3)]), np.zeros((3, 1, SIZE), np.int32)
        world.compile(shift(SIZE))(x, y, 1)
        np.testing.assert_array_equal(y, np.roll(x, 1, axis=0) + 1)


def test_two_threads_of_python_are_two_ranks(tmp_path: Path) -> None:
    """A rank that waits must not keep the other one from running: the global lock is free meanwhile."""
    outputs = [np.zeros((1, SIZE), np.int32) for _ in range(2)]
    ready = threading.Barrier(2)
    errors: List[BaseException] = []

    def rank(me: int) -> None:
        try:
            with pld.World.join(2, me, bootstrap=f"file:{tmp_path}/ranks", timeout=20) as world:
                assert (world.nranks, world.rank) == (2, me)
                executable = world.compile(shift(SIZE))
                ready.wait()
                if me == 0:
                    time.sleep(0.2)  # rank 1 waits for what only this thread sends
                executable(rows(me), outputs[me], 7)
                ready.wait()
        except BaseException as error:
            errors.append(error)
            ready.abort()

    threads = [threading.Thread(target=rank, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for me in range(2):
        np.testing.assert_array_equal(outputs[me], rows(1 - me) + 7)


JOINED = """
import os, numpy as np, pld
from programs import shift, stuck
from test_world import SIZE, rows, go
world = pld.World.join(timeout=30)
"""


def test_processes_join_by_their_environment(scripts: Any, tmp_path: Path) -> None:
    script = JOINED + (
        "y = np.zeros((1, SIZE), np.int32)\n"
        "world.compile(shift(SIZE))(rows(world.rank), y, 2)\n"
        "print(world.rank, world.nranks, y.tolist())\n"
    )
    environment = {"PLD_WORLD_SIZE": "4", "PLD_JOB": tmp_path.name, "PLD_DIR": str(tmp_path)}
    tmp_path.chmod(0o700)
    ranks = [scripts(script, PLD_RANK=str(rank), **environment) for rank in range(4)]
    for rank, script in enumerate(ranks):
        assert script.rest() == f"{rank} 4 {(rows((rank - 1) % 4) + 2).tolist()}"


@pytest.mark.parametrize("transport", ["auto", "ucx"])
def test_ranks_of_several_hosts(scripts: Any, transport: str) -> None:
    if "ucx: available" not in pld.info():
        pytest.skip("there is no OpenUCX here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = f"transport='{transport}', bootstrap='tcp:127.0.0.1:{port}', peer_timeout=10"
    script = JOINED.replace("join(timeout=30)", f"join(4, int(os.environ['RANK']), {where})") + (
        "y = np.zeros((1, SIZE), np.int32)\n"
        "world.compile(shift(SIZE))(rows(world.rank), y, 2)\n"
        "print(world.rank, world.nranks, y.tolist())\n"
    )
    environment = {"PLD_SECRET": "a secret of test_world.py"}
    ranks = [scripts(script, RANK=str(rank), PLD_HOST=f"host-{rank // 2}", **environment) for rank in range(4)]
    for rank, started in enumerate(ranks):
        assert started.rest() == f"{rank} 4 {(rows((rank - 1) % 4) + 2).tolist()}"


def test_bootstraps_and_transports_that_do_not_fit() -> None:
    with pytest.raises(pld.InvalidArgument, match="PLD_TRANSPORT_UCX"):
        pld.World.join(2, 0, transport="shm", bootstrap="tcp:127.0.0.1:7")
    with pytest.raises(pld.InvalidArgument, match="HOST:PORT"):
        pld.World.join(2, 0, bootstrap="tcp:127.0.0.1")
    with pytest.raises(ValueError, match="'rdma' is none of"):
        pld.World.join(2, 0, transport="rdma")  # type: ignore[arg-type]


def test_a_killed_process_is_a_lost_peer(scripts: Any, tmp_path: Path) -> None:
    script = JOINED + (
        "run = world.compile(stuck())\n"
        "print('waiting', flush=True)\n"
        "try: run(go(0)[0])\n"
        "except pld.PeerLost as error: print(error)\n"
        "print(type(world.error).__name__)\n"
        "try: run(go(0)[0])\n"
        "except pld.PeerLost: print('again')\n"
    )
    environment = {"PLD_WORLD_SIZE": "3", "PLD_JOB": tmp_path.name, "PLD_DIR": str(tmp_path)}
    tmp_path.chmod(0o700)
    ranks = [scripts(script, PLD_RANK=str(rank), **environment) for rank in range(3)]
    for script in ranks:
        assert script.line() == "waiting"
    os.kill(ranks[1].process.pid, signal.SIGKILL)
    for rank in (0, 2):
        *report, error, again = ranks[rank].rest().split("\n")
        assert "rank 1" in "\n".join(report) and (error, again) == ("PeerLost", "again")


INTERRUPTED = """
try: {call}
except KeyboardInterrupt: print("interrupted", flush=True)
print(type(world.error).__name__, flush=True)
"""
NEW_WORLD = """
with pld.World(2) as world:
    world.compile(stuck())(go(1, 1))
print("and on")
"""
THREADS = "import pld\nfrom programs import stuck\nfrom test_world import go\nworld = pld.World(2, timeout=600)\n"


@pytest.mark.parametrize(
    "prepare, call, error",
    [
        ("run = world.compile(stuck())", "run(go(0, 0))", "Aborted"),
        ("run = world.compile(stuck()).submit(go(0, 0))", "run.wait()", "NoneType"),
        ("run = world.compile(stuck()).submit(go(0, 0))", "run.wait(timeout=500)", "NoneType"),
    ],
)
def test_ctrl_c_in_a_wait(scripts: Any, prepare: str, call: str, error: str) -> None:
    end = "world.abort()\n"  # what is still under way
    waiting = f"{THREADS}{prepare}\nprint('waiting', flush=True)\n" + INTERRUPTED.format(call=call) + end + NEW_WORLD
    script = scripts(waiting)
    assert script.line() == "waiting"
    time.sleep(0.3)  # into the wait; before it, the signal would be met just as well
    script.process.send_signal(signal.SIGINT)
    assert script.line() == "interrupted"
    assert script.line() == error
    assert script.rest() == "and on"


def test_ctrl_c_leaves_a_world_whose_launch_ends(scripts: Any) -> None:
    """The handler runs while a launch is about to end by itself: nothing is aborted."""
    script = scripts(
        THREADS + "executable = world.compile(stuck())\n"
        "def interrupt(self, timeout=None):\n"
        "    raise KeyboardInterrupt\n"
        "from pld.executable import Run\n"
        "waiting, Run.wait = Run.wait, interrupt\n"
        "try: executable(go(1, 1))\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "Run.wait = waiting\n"
        "executable(go(1, 1))\n"
        "print(world.error)\n"
    )
    assert script.rest() == "interrupted\nNone"


@pytest.mark.parametrize("call", ["world.compile(stuck())", "run.reset()"])
def test_ctrl_c_while_other_ranks_do_not_come(scripts: Any, tmp_path: Path, call: str) -> None:
    """A compile or reset of one rank only: the other one is told, as of any abort."""
    environment = {"PLD_WORLD_SIZE": "2", "PLD_JOB": tmp_path.name, "PLD_DIR": str(tmp_path)}
    tmp_path.chmod(0o700)
    joined = JOINED.replace("timeout=30", "timeout=600") + "run = world.compile(stuck(), persistent=True)\n"
    script = scripts(
        joined + "print('waiting', flush=True)\n" + INTERRUPTED.format(call=call) + NEW_WORLD,
        PLD_RANK="0",
        **environment,
    )
    peer = scripts(
        joined + "print('idle', flush=True)\n"
        "import time\n"
        "while world.error is None: time.sleep(0.01)\n"
        "print(type(world.error).__name__)\n",
        PLD_RANK="1",
        **environment,
    )
    assert (script.line(), peer.line()) == ("waiting", "idle")
    time.sleep(0.3)
    script.process.send_signal(signal.SIGINT)
    assert script.line() == "interrupted"
    assert script.line() == "Aborted"
    assert script.rest() == "and on"
    assert peer.rest() == "Aborted"


def test_ctrl_c_while_joining(scripts: Any, tmp_path: Path) -> None:
    script = scripts(
        f"import pld\nprint('waiting', flush=True)\n"
        f"try: pld.World.join(2, 0, bootstrap='file:{tmp_path}/ranks', timeout=600)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "from programs import stuck\nfrom test_world import go\n" + NEW_WORLD
    )
    assert script.line() == "waiting"
    time.sleep(0.3)
    script.process.send_signal(signal.SIGINT)
    assert script.rest() == "interrupted\nand on"


def test_a_wait_with_a_timeout_leaves_the_run() -> None:
    with pld.World(2, timeout=600) as world:
        run = world.compile(stuck()).submit(go(0, 0))
        with pytest.raises(pld.Timeout, match="the run has not ended within 0.1 s"):
            run.wait(0.1)
        assert not run.done and world.error is None
        world.abort(17)
        with pytest.raises(pld.Aborted, match="17"):
            run.wait()
        assert run.done and isinstance(world.error, pld.Aborted)


@pytest.mark.parametrize("main", [True, False])
def test_a_wait_that_is_not_satisfied_times_out(main: bool) -> None:
    errors: List[BaseException] = []
    with pld.World(2, timeout=0.3) as world:
        executable = world.compile(stuck())

        def launch() -> None:
            try:
                executable(go(1, 0))
            except pld.Error as error:
                errors.append(error)

        if main:
            launch()
        else:
            thread = threading.Thread(target=launch)
            thread.start()
            thread.join()
        assert isinstance(errors[0], pld.Timeout) and errors[0].status == "PLD_ERR_TIMEOUT"
        assert "signal[0]" in str(errors[0]) and f"{TESTS / 'programs.py'}:" in str(errors[0])
        executable(go(1, 1))  # a time-out ends the launch only


def test_the_exchange_of_the_engine() -> None:
    barrier = threading.Barrier(2)
    gathered = [b"", b""]
    outputs = [np.zeros((1, SIZE), np.int32) for _ in range(2)]

    def rank(me: int) -> None:
        def exchange(mine: bytes) -> List[bytes]:
            gathered[me] = mine
            barrier.wait()
            everyone = list(gathered)
            barrier.wait()
            return everyone

        with pld.World.join(2, me, exchange=exchange) as world:
            world.compile(shift(SIZE))(rows(me), outputs[me], 0)
            barrier.wait()

    threads = [threading.Thread(target=rank, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(outputs, [rows(1), rows(0)])


def test_log_messages() -> None:
    messages: "list[tuple[str, str]]" = []

    def log(level: str, message: str) -> None:
        messages.append((level, message))

    with pld.World(2, log=log, log_level="error"):
        assert not messages
    with pld.World(2, log=log):
        assert messages == [("info", "world of 2 threads created")]


def test_pools_and_persistent_windows() -> None:
    with pld.World(2) as world:
        first = world.compile(shift(SIZE), pool="shared", pool_bytes=4096, persistent=True)
        with pytest.raises(pld.Mismatch, match="inbox"):
            world.compile(shift(SIZE + 1), pool="shared")
        with pytest.raises(pld.NoSpace):
            world.compile(shift(SIZE), pool="small", pool_bytes=64)
        first.reset()
        with first:
            x, y = np.stack([rows(0), rows(1)]), np.zeros((2, 1, SIZE), np.int32)
            first(x, y, 0)
        np.testing.assert_array_equal(y, x[::-1])
        with pytest.raises(pld.InvalidState):
            world.compile(shift(SIZE)).reset()


def test_times_of_launches() -> None:
    with pld.World(2) as world:
        executable = world.compile(shift(SIZE), timed=True)
        before = time.monotonic_ns()
        executable(np.zeros((2, 1, SIZE), np.int32), np.zeros((2, 1, SIZE), np.int32), 0)
        after = time.monotonic_ns()
        for rank in range(2):
            found = executable.time(rank)
            assert before <= found.begin_ns <= found.end_ns <= after
        with pytest.raises(pld.InvalidState):
            world.compile(shift(SIZE)).time(0)


def test_traces(tmp_path: Path) -> None:
    with pld.World(2, trace=tmp_path / "trace.json") as world:
        world.compile(shift(SIZE))(np.zeros((2, 1, SIZE), np.int32), np.zeros((2, 1, SIZE), np.int32), 0)
    lines = (tmp_path / "trace.json").read_text().split("\n")
    tasks = [json.loads(line.rstrip(",")) for line in lines if '"cat":"task"' in line]
    assert {(task["name"], task["pid"]) for task in tasks} == {("exchange", 0), ("exchange", 1)}
    assert all(task["args"]["line"].startswith(f"{TESTS / 'programs.py'}:") for task in tasks)


def test_info_tells_what_there_is() -> None:
    assert pld.__version__ in pld.info() and "PLD_CHAOS" in pld.info()
