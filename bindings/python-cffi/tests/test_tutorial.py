"""The steps of the tutorial: each runs between threads and processes, and is the program of its text."""

import runpy
from pathlib import Path
from typing import Any

import pytest

import pld

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STEPS = sorted(path.stem for path in (EXAMPLES / "pld").glob("[01]*.pld"))


@pytest.fixture(params=STEPS)
def step(request: Any) -> str:
    name: str = request.param
    return name


def run(step: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr("sys.argv", [step, *options])
    runpy.run_path(str(EXAMPLES / "python" / f"{step}.py"), run_name="__main__")


def test_there_are_sixteen() -> None:
    assert len(STEPS) == 16


def test_step_is_its_text(step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(step, monkeypatch, "--print")
    assert capsys.readouterr().out == str(pld.Program.load(EXAMPLES / "pld" / f"{step}.pld"))


@pytest.mark.parametrize("ranks", ["1", "2", "3", "4"])
def test_threads(step: str, ranks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(step, monkeypatch, "--ranks", ranks)
    assert "passed: " in capsys.readouterr().out


def test_processes(step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(step, monkeypatch, "--ranks", "3", "--processes")
    assert "passed: " in capsys.readouterr().out
