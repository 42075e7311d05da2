#!/usr/bin/env bash
# Brings a newer OpenUCX than Debian's, as the wheel libucx-cu12 has it: tests compare declarations with its headers, and
# run with its libraries. Prints its directory, which has include and lib.
set -euo pipefail
cd "$(dirname "$0")/.."
ucx=$PWD/target/ucx
wheel='libucx-cu12==1.22.0 --hash=sha256:5cbbef0c140a0a158ae3486089af659b38822b2234cd3dc90ba40a5e6553402a'

if [ ! -d "$ucx" ]; then
    mkdir -p target
    work=$(mktemp -d "$ucx.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python3 -m venv "$work/venv"
    echo "$wheel" >"$work/requirements.txt"
    "$work/venv/bin/python" -m pip --quiet --disable-pip-version-check download --no-deps --require-hashes \
        --requirement "$work/requirements.txt" --dest "$work" --only-binary :all: >&2
    "$work/venv/bin/python" -m zipfile -e "$work"/*.whl "$work/wheel"
    mv -T "$work/wheel/libucx" "$ucx" 2>/dev/null || [ -d "$ucx" ]
fi
echo "$ucx"
