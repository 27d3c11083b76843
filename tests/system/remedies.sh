#!/usr/bin/env bash
# Run the remedies that messages name: tests/system/remedies.sh BUILD. remedies.txt has the commands.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
for python in python3 /usr/bin/python3; do # the first python3 in PATH may have no numpy
    "$python" -c 'import numpy' 2>/dev/null && PATH=$(dirname "$(command -v "$python")"):$PATH && break
done
exec python3 -B tests/system/remedies.py "$build"
