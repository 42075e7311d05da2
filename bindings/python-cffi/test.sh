#!/usr/bin/env bash
# Tests the package that install.sh has installed; no source of it can be seen from here.
# Usage: bindings/python-cffi/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")"
PATH="$(realpath ../../target/python/venv/bin):$PATH"

ruff check --quiet --config pyproject.toml . ../../examples/python
ruff format --quiet --check .
python -m pytest "$@"
python -m mypy src/pld
python -m mypy tests ../../examples/python
