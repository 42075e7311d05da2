#!/usr/bin/env bash
# Tests the wheel as a user installs it: into an empty environment, from which no source of the package can be seen.
# Usage: PLD_LIBRARY=libpld.so bindings/python-cffi/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")"
work=$(realpath ../..)/target/python
rm -rf "$work/build" "$work/venv" "$work/wheel"
python3 -m venv "$work/venv"
PATH="$work/venv/bin:$PATH"
export PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python -m pip wheel --no-deps --wheel-dir "$work/wheel" .
python -m pip install "$work"/wheel/pld-*.whl
python ../../examples/python/allreduce.py
python ../../examples/python/moe_dispatch_combine.py

python -m pip install -r requirements.txt
ruff check --quiet --config pyproject.toml . ../../examples/python
ruff format --quiet --check .
python -m pytest "$@"
python -m mypy src/pld
python -m mypy tests ../../examples/python
