#!/usr/bin/env bash
# Brings the vendor's headers of ACL and HCCL, as the torch_npu wheel has them: tests compare declarations with them.
# Prints their include directories, separated by colons.
set -euo pipefail
cd "$(dirname "$0")/.."
headers=$PWD/target/cann-headers
wheel='torch_npu==2.14.0 --hash=sha256:7736f7d82cf9f16c7dfc4537f7e7c638153da760273a193455e70857f912189e'

if [ ! -d "$headers" ]; then
    mkdir -p target
    work=$(mktemp -d "$headers.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python3 -m venv "$work/venv"
    echo "$wheel" >"$work/requirements.txt"
    # The file is the same on every machine: of it only headers are used.
    "$work/venv/bin/python" -m pip --quiet --disable-pip-version-check download --no-deps --require-hashes \
        --requirement "$work/requirements.txt" --dest "$work" --only-binary :all: \
        --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_28_x86_64 >&2
    "$work/venv/bin/python" - "$work"/*.whl "$work/headers" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    folders = ("torch_npu/include/third_party/acl/inc/acl/", "torch_npu/include/third_party/hccl/inc/hccl/")
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(folders)])
PYTHON
    mv -T "$work/headers/torch_npu/include" "$headers" 2>/dev/null || [ -d "$headers" ]
fi
echo "$headers:$headers/third_party/acl/inc:$headers/third_party/hccl/inc"
