"""Everything in include/pld.h can be reached from Python."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import PROJECT

import pld
from pld import errors
from pld._native import ffi, lib

HEADER = (PROJECT / "include" / "pld.h").read_text()
SOURCE = "".join(path.read_text() for path in Path(pld.__file__).parent.rglob("*.py") if path.name != "_declarations.py")

NOT_NEEDED = {
    "pld_version": "the text of pld_version_string has the same numbers",
}


def functions() -> "set[str]":
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    code = code[: code.index('}  // extern "C"')]
    return set(re.findall(r"\b(pld_\w+)\(", code))


def used() -> "set[str]":
    """The functions that the package names, and those whose names it puts together."""
    names = set(re.findall(r"lib\.(pld_\w+)", SOURCE))
    scalar_ops = re.findall(r'arithmetic\("(\w+)"', SOURCE) + re.findall(r'_compared\("(\w+)"', SOURCE)
    names.update(f"pld_{op}" for op in scalar_ops)
    tile_ops = ("add", "sub", "mul", "div", "max", "min")
    names.update(f"pld_tile_{op}{scalar}" for op in tile_ops for scalar in ("", "s"))
    return names


def test_every_function_is_used() -> None:
    assert len(functions()) > 150
    assert functions() - used() == set(NOT_NEEDED)


def test_nothing_else_is_used() -> None:
    assert used() <= functions()
    for name in functions():
        assert getattr(lib, name)


def test_every_status_has_an_exception() -> None:
    statuses = set(ffi.typeof("pld_status").relements) - {"PLD_OK"}
    assert statuses == set(errors._CLASSES)
    for name, kind in errors._CLASSES.items():
        assert kind.status == name and issubclass(kind, pld.Error)
        assert getattr(pld, kind.__name__) is kind


def test_every_element_type_has_a_name() -> None:
    names = {name.replace("PLD_DTYPE_", "").lower() for name in ffi.typeof("pld_dtype").relements}
    assert names == {dtype.name for dtype in pld.dtypes.BY_CODE.values()}
