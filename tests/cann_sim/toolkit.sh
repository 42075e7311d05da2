#!/bin/sh
# Makes a toolkit directory of the simulated CANN, laid out as a real one, for ASCEND_HOME_PATH. Made again only when its
# sources are other ones; several processes may do this at once.
#   toolkit.sh DIRECTORY
set -eu
[ $# = 1 ] || { echo "usage: $0 DIRECTORY" >&2; exit 2; }
sources=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$1")"
home=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")

exec 9>"$home.lock"
flock 9
made=$(cd "$sources/.." && find cann_sim/*.cpp cann_sim/*.hpp cann_sim/toolkit.sh cann_sim/bin pto_sim -type f | LC_ALL=C sort | xargs sha256sum)
[ "$made" != "$(cat "$home/made" 2>/dev/null)" ] || exit 0

work=$home.$$
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lib64" "$work/bin" "$work/include"
g++ -std=c++20 -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -fno-gnu-unique -pthread \
    -I"$sources/../pto_sim" -o "$work/lib64/libascendcl.so" "$sources"/*.cpp -ldl
ln -s libascendcl.so "$work/lib64/libhccl.so"
cp "$sources/bin/ccec" "$sources/bin/ld.lld" "$work/bin"
cp -R "$sources/../pto_sim/pto" "$work/include"
printf '%s\n' "$made" >"$work/made"
rm -rf "$home"
mv "$work" "$home"
