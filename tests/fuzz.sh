#!/usr/bin/env bash
# Every fuzzing harness over its seeds and over what was found before, without fuzzing: tests/fuzz.sh BUILD
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=${1:-build}
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    inputs=("$build/fuzz/corpus/$name")
    [ ! -d "tests/fuzz/found/$name" ] || inputs+=("tests/fuzz/found/$name")
    check "$name" "$build/fuzz/$name" "${inputs[@]}"
done
check_sum
