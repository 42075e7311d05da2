#!/bin/sh
# Installs the MPI libraries that libpld is compared with, and builds mpi.c for each: target/peers/bin/NAME; and UCX's own
# benchmark.
# Needs a C compiler and, for all but Debian's Open MPI 4, Python 3 with venv and pip. A library that cannot be had is
# left out, and the benchmarks do without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
peers=${CARGO_TARGET_DIR:-$here/../../target}/peers
mkdir -p "$peers/bin" && peers=$(cd "$peers" && pwd) || exit 1
missing=

# build NAME COMPILER [FLAG...]: the benchmark for one library.
build() {
  name=$1
  compiler=$2
  shift 2
  if "$compiler" -O3 -march=native -Wall -Wextra "$here/mpi.c" -o "$peers/bin/$name.new" "$@"; then
    mv "$peers/bin/$name.new" "$peers/bin/$name"
    echo "installed: $name"
  else
    missing="$missing $name"
  fi
}

# venv NAME PACKAGE...: a Python environment, which is how three of the libraries are packaged.
venv() {
  name=$1
  shift
  [ -x "$peers/$name/bin/pip" ] || python3 -m venv "$peers/$name" || return 1
  "$peers/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
}

if ! command -v mpicc.openmpi >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -qq --no-install-recommends openmpi-bin libopenmpi-dev ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends openmpi-bin libopenmpi-dev; }
fi
if command -v mpicc.openmpi >/dev/null; then
  build openmpi4 mpicc.openmpi
else
  missing="$missing openmpi4(apt-get_install_openmpi-bin_libopenmpi-dev)"
fi

if venv openmpi5 openmpi; then
  VIRTUAL_ENV=$peers/openmpi5 PATH=$peers/openmpi5/bin:$PATH build openmpi5 mpicc
else
  missing="$missing openmpi5"
fi

if venv mpich mpich; then
  build mpich "$peers/mpich/bin/mpicc"
else
  missing="$missing mpich"
fi

if venv intel impi-rt impi-devel; then
  lib=$peers/intel/lib
  build intel gcc -I "$peers/intel/include" -L "$lib" -Wl,-rpath,"$lib" -lmpi
else
  missing="$missing intel"
fi

# UCX's own benchmark.
if ! command -v ucx_perftest >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -qq --no-install-recommends ucx-utils
fi
command -v ucx_perftest >/dev/null || missing="$missing ucx_perftest(apt-get_install_ucx-utils)"

if [ -n "$missing" ]; then
  echo "not installed:$missing" >&2
fi
