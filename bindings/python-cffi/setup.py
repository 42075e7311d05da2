"""Builds the wheel: the package, libpld.so, and the declarations of include/pld.h for cffi.

`PLD_LIBRARY=FILE` takes a library that is built already; otherwise cargo builds it. The wheel has no machine code of
Python's, so one serves every CPython; its tag names the C library that libpld.so needs.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cffi import FFI
from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
BUILD = PROJECT / "target" / "python"

sys.path.insert(0, str(HERE))
from declarations import declarations  # noqa: E402  (stands beside this file)


def library() -> Path:
    """The library that goes into the wheel, built if need be."""
    given = os.environ.get("PLD_LIBRARY")
    if given:
        return Path(given)
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run([cargo, "build", "--release", "--locked", "--lib"], cwd=PROJECT, check=True)
    target = PROJECT / os.environ.get("CARGO_TARGET_DIR", "target")
    return target / "release" / "libpld.so"


def platform_tag(path: Path) -> str:
    """`manylinux_2_N_ARCH`, where glibc 2.N has all symbols that the library names."""
    versions = re.findall(rb"GLIBC_2\.(\d+)\0", path.read_bytes())
    return f"manylinux_2_{max(map(int, versions))}_{platform.machine()}"


class BuildPackage(build_py):
    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "pld"
        package.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library(), package / "libpld.so")
        ffi = FFI()
        ffi.cdef(declarations((PROJECT / "include" / "pld.h").read_text()))
        ffi.set_source("pld._declarations", None)
        ffi.emit_python_code(str(package / "_declarations.py"))


class Wheel(bdist_wheel):
    def get_tag(self) -> "tuple[str, str, str]":
        return "py3", "none", platform_tag(library())


class Binary(Distribution):
    """Has files of one platform."""

    def has_ext_modules(self) -> bool:
        return True


def version() -> str:
    found = re.search(r'^version = "(.+)"$', (PROJECT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found, "Cargo.toml has no version"
    return found[1]


BUILD.mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    distclass=Binary,
    cmdclass={"build_py": BuildPackage, "bdist_wheel": Wheel},
    options={"build": {"build_base": str(BUILD / "build")}, "egg_info": {"egg_base": str(BUILD)}},
)
