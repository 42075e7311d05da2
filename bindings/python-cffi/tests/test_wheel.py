"""What is in the wheel, and where it runs."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PROJECT

import pld

PACKAGE = Path(pld.__file__).parent
installed = pytest.mark.skipif(PACKAGE.parent.name == "src", reason="runs from the source folder")


@installed
def test_the_wheel_names_the_glibc_that_the_library_needs() -> None:
    """By what binutils read in the library, not by what the build has read."""
    needs = subprocess.run(
        ["readelf", "--version-info", "--wide", str(PACKAGE / "libpld.so")], capture_output=True, text=True
    )
    versions = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", needs.stdout)]
    lines = (importlib.metadata.distribution("pld").read_text("WHEEL") or "").split("\n")
    assert f"Tag: py3-none-manylinux_2_{max(versions)}_{platform.machine()}" in lines


@installed
def test_the_library_needs_what_every_linux_has() -> None:
    """The list of libraries that manylinux allows."""
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(PACKAGE / "libpld.so")], capture_output=True, text=True
    )
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic.stdout))
    assert needed and needed <= {
        "libc.so.6",
        "libm.so.6",
        "libgcc_s.so.1",
        "libpthread.so.0",
        "libdl.so.2",
        "ld-linux-x86-64.so.2",
    }


@installed
def test_the_wheel_is_of_this_version() -> None:
    version = re.search(r'^version = "(.+)"$', (PROJECT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version and pld.__version__ == version[1] == importlib.metadata.version("pld")
    assert (PACKAGE / "py.typed").exists()
    files = {file.name for file in PACKAGE.iterdir() if file.suffix == ".so"}
    assert files == {"libpld.so"}


def test_every_public_name_is_documented() -> None:
    for module in (pld, pld.testing):
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                assert value.__doc__, name
            for method in vars(value) if inspect.isclass(value) else ():
                if not method.startswith("_") and callable(getattr(value, method)):
                    assert getattr(value, method).__doc__, f"{name}.{method}"
