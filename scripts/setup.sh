#!/usr/bin/env bash
# Brings what building and testing need beyond rustc, cargo, gcc, make, git and Python: Debian's packages.
# Usage: scripts/setup.sh TOOL...   where TOOL is a command that must exist afterwards, or one of: venv (Python's), ucx
# (the libraries of OpenUCX), ucx-headers.
set -euo pipefail

package_of() {
    case $1 in
        g++) echo g++ ;;
        clang++) echo clang ;;
        pkg-config) echo pkg-config ;;
        mpicc | mpirun) echo openmpi-bin libopenmpi-dev ;;
        nm) echo binutils ;;
        venv) echo python3-venv ;;
        ucx) echo libucx0 ;;
        ucx-headers) echo libucx-dev ;;
        ip) echo iproute2 ;;
        *) echo "$1" ;;
    esac
}

have() {
    case $1 in
        venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
        ucx) python3 -c 'import ctypes; ctypes.CDLL("libucp.so.0")' 2>/dev/null ;;
        ucx-headers) [ -e /usr/include/ucp/api/ucp.h ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

missing=()
for tool in "$@"; do
    have "$tool" || missing+=($(package_of "$tool"))
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "These packages are missing and need an administrator: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "Please install with your system's package manager: ${missing[*]}" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing ${missing[*]}"
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
