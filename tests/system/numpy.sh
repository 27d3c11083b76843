#!/usr/bin/env bash
# The program against a second implementation in NumPy: tests/system/numpy.sh BUILD [FILTER...].
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
[ $# -gt 0 ] || set -- build
for python in python3 /usr/bin/python3; do # a python3 of one's own often has no numpy
    "$python" -c 'import numpy' 2>/dev/null && exec "$python" -B tests/system/numpy/check.py "$@"
done
echo "SKIP 1: python3-numpy is not here"
echo "0 passed, 0 failed, 1 skipped"
