#!/usr/bin/env bash
# Run every harness with clang's libFuzzer and sanitizers, one per core: run.sh BUILD SECONDS [HARNESS]...
# The grown corpus stays in BUILD/evolved for the next run; inputs that fail are stored in BUILD/crashes. An input
# that takes longer than ten seconds counts as a hang: sanitizers are slow, and the machine may be busy.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
build=$1 seconds=$2
shift 2
harnesses=("$@")
[ $# -gt 0 ] || mapfile -t harnesses < <(ls "$build/libfuzzer")
mkdir -p "$build/crashes" "$build/log"

run() { # NAME
    local name=$1 inputs=("$build/fuzz/corpus/$1")
    mkdir -p "$build/evolved/$name"
    [ ! -d "tests/long/fuzz/found/$name" ] || inputs+=("tests/long/fuzz/found/$name")
    CMOCKA_TEST_ABORT=1 nice -n 10 "$build/libfuzzer/$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
        -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
        "$build/evolved/$name" "${inputs[@]}" >"$build/log/$name" 2>&1
    local code=$?
    echo "$name: executions $(last 'stat::number_of_executed_units: *'), $(last 'stat::average_exec_per_sec: *') per second," \
        "coverage $(last '.* cov: '), memory $(last 'stat::peak_rss_mb: *') MiB$([ $code -eq 0 ] || echo ", FAILED, see $build/log/$name")"
}
last() { # PREFIX: the number after its last occurrence in the log
    sed -n "s/^$1\([0-9]*\).*/\1/p" "$build/log/$name" | tail -n 1
}
export -f run last
export build seconds

printf '%s\n' "${harnesses[@]}" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I{} bash -c 'run {}' | tee "$build/log/all"
awk '{for (i = 1; i < NF; i++) if ($i == "executions") n += $(i + 1)} END {printf "executions %d", n}' "$build/log/all"
found() { find "$build/crashes" -name "*-$1-*" | wc -l; }
echo ", crashes $(($(found crash) + $(found oom))), hangs $(found timeout), leaks $(found leak)"
! grep -q FAILED "$build/log/all"
