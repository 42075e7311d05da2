#!/usr/bin/env bash
# Tests the wheel as a user installs it: into an empty environment, from which no source of the package can be seen.
# Usage: PLD_LIBRARY=libpld.so bindings/python-cffi/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")"
work=../../target/python
rm -rf "$work/venv" "$work/wheel"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$work/wheel" .
"$work/venv/bin/pip" --quiet --disable-pip-version-check install "$work"/wheel/pld-*.whl
"$work/venv/bin/python" ../../examples/python/allreduce.py
"$work/venv/bin/pip" --quiet --disable-pip-version-check install -r requirements.txt
"$work/venv/bin/python" -m pytest "$@"
"$work/venv/bin/python" -m mypy src/pld
"$work/venv/bin/python" -m mypy tests ../../examples/python
