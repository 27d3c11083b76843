#!/usr/bin/env bash
# Every fuzzing harness by our own driver: the seeds, what was found before, and what a seeded mutator
# makes of them: tests/fuzz.sh BUILD [SECONDS], so many for each harness. GF_TEST_SEED=N is another
# mutator. Inputs that fail are left in BUILD/fuzz/crashes.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
seconds=${2:-0.8}
mkdir -p "$build/fuzz/crashes"
passed=0 failed=0 executions=0

for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    inputs=("$build/fuzz/corpus/$name")
    [ ! -d "tests/fuzz/found/$name" ] || inputs+=("tests/fuzz/found/$name")
    if output=$(FUZZ_CRASHES=$build/fuzz/crashes "$build/fuzz/$name" -max_total_time="$seconds" \
        -seed="${GF_TEST_SEED:-1}" "${inputs[@]}" 2>&1); then
        passed=$((passed + 1))
        executions=$((executions + $(sed -n 's/.*: executions \([0-9]*\) .*/\1/p' <<<"$output" | tail -n 1)))
    else
        failed=$((failed + 1))
    fi
    tail -n 20 <<<"$output"
done
echo "executions $executions, harnesses that failed $failed"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
