#!/usr/bin/env bash
# Test the Python package: tests/system/python.sh BUILD. Generates it in a directory of its own and runs python/tests with
# pytest. Tests of arrays on a device need PyTorch and a GPU.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)

if grep -q -- -fsanitize "$build/config"; then
    skip 1 "Python cannot load a library with sanitizers"
    check_summary
    exit
fi
python=
for name in python3 /usr/bin/python3; do # the first python3 in PATH may have no packages
    [ -n "$python" ] || ! "$name" -c 'import numpy, pytest' 2>/dev/null || python=$name
done
if [ -z "$python" ]; then
    skip 1 "no python3-numpy, or no python3-pytest"
    check_summary
    exit
fi

generate() { # as `make python` does, but into $work
    mkdir "$work/gpufilter" && cp python/gpufilter/*.py python/gpufilter/py.typed "$work/gpufilter" &&
        "$python" -B python/generate.py "$build/libgpufilter.so" "$work/gpufilter/_functions.py"
}
check "generate the package" generate
export PYTHONPATH=$work GPUFILTER_LIBRARY=$build/libgpufilter.so GPUFILTER_PROGRAM=$build/gpufilter
"$python" -B -m pytest -p no:cacheprovider -q -rs --basetemp="$work/pytest" python/tests >"$work/printed" 2>&1
code=$?
count() { # WORD: print its count in the last line, as in "3 failed, 120 passed in 4.5s"
    sed -nE '$s/.*\b([0-9]+) '"$1"'.*/\1/p' "$work/printed"
}
passed=$((passed + $(count passed || :) + 0)) failed=$((failed + $(count failed || :) + 0))
[ $code -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
[ $code -eq 0 ] || cat "$work/printed"
while read -r number reason; do
    skip "$number" "$reason"
done < <(sed -nE 's/^SKIPPED \[([0-9]+)\] [^ ]+ (.*)/\1 \2/p' "$work/printed")
check_summary
