#!/usr/bin/env bash
# Run every fuzzing harness on its seeds and on earlier findings, without fuzzing: tests/long/fuzz.sh BUILD
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}
for source in tests/long/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    inputs=("$build/fuzz/corpus/$name")
    [ ! -d "tests/long/fuzz/found/$name" ] || inputs+=("tests/long/fuzz/found/$name")
    check "$name" "$build/fuzz/$name" "${inputs[@]}"
done
check_summary
