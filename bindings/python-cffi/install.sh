#!/usr/bin/env bash
# Makes target/python/venv, an environment with the wheel and with what tests and reference docs need. The wheel comes
# first, as to a user: the examples run where there is nothing else.
# Usage: [PLD_LIBRARY=libpld.so] bindings/python-cffi/install.sh
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
