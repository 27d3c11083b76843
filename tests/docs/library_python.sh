#!/usr/bin/env bash
# Compare docs/library.py with the header, the program and NumPy: tests/docs/library_python.sh BUILD.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}

if grep -q -- -fsanitize "$build/config"; then
    skip 1 "Python cannot load a library with sanitizers"
    check_summary
    exit
fi
for python in python3 /usr/bin/python3; do # the first python3 in PATH may have no numpy
    "$python" -c 'import numpy' 2>/dev/null || continue
    LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$python" -B tests/docs/library_check.py "$build" "$work"
    exit
done
skip 1 "no python3-numpy"
check_summary
