#!/usr/bin/env bash
# Runs the shell snippets of documents: each ```sh block in a clean copy of the project.
# A line that calls make is checked to name a goal that exists: CI runs the goals themselves.
# Usage: scripts/run-docs.sh FILE.md...
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR=$copy/build/cargo  # where CMake builds too: the library is built once
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"

for file in "$@"; do
    awk -v out="$copy/.block" '
        /^```sh$/ { n++; inside = 1; next }
        /^```$/ { inside = 0 }
        inside { print > (out "-" n ".sh") }' "$file"
    for block in "$copy"/.block-*.sh; do
        [ -e "$block" ] || continue
        echo "== $file"
        goals=$(sed -nE 's/^make +([a-z-]+).*/\1/p' "$block")
        for goal in $goals; do make -n "$goal" >/dev/null; done
        sed -i -E '/^make( |$)/d' "$block"
        (cd "$copy" && bash -euo pipefail -x "$block")
        rm "$block"
    done
done
