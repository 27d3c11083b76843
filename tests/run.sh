#!/usr/bin/env bash
# Runs every test of a build: tests/run.sh BUILD. Ends with "N passed, N failed, N skipped", where one
# test is one cmocka test, one golden digest, or one command of a transcript. With GF_COUNTS=FOLDER what a build with
# --coverage counts goes there, apart for each test: one that is killed, or finds the disk full, spoils its own alone.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
log=$build/tests/log
mkdir -p "$log"
[ -z "${GF_COUNTS:-}" ] || export GCOV_ERROR_FILE=/dev/null # what looks at standard error sees nothing of it
passed=0 failed=0 skipped=0

count() { # FILE WORD: the number in cmocka's or a script's last "WORD N" or "N WORD" line
    sed -n "s/^\[  $2 *\] \([0-9]*\) test.*/\1/p" "$1" | tail -n 1
}

for source in tests/test_*.c; do # a build folder may hold tests that are no more
    name=$(basename "$source" .c)
    test=$build/tests/$name
    start=$SECONDS
    [ -z "${GF_COUNTS:-}" ] || export GCOV_PREFIX=$GF_COUNTS/$name
    timeout 900 "$test" >"$log/$name" 2>&1 # a hang is a failure, not a wait
    code=$?
    p=$(count "$log/$name" PASSED) f=$(count "$log/$name" FAILED) s=$(count "$log/$name" SKIPPED)
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
    if [ $code -ne 0 ]; then
        [ "${f:-0}" -gt 0 ] || failed=$((failed + 1))
        cat "$log/$name"
    fi
    echo "$name: ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped (exit $code, $((SECONDS - start)) s)"
    grep -hE '^SKIP|samples compared' "$log/$name"
done

for script in tests/golden.sh \
    tests/transcripts.sh \
    tests/signals.sh \
    tests/outputs.sh \
    tests/outputs_full.sh \
    tests/progress.sh \
    tests/kill.sh \
    tests/library.sh \
    tests/install.sh \
    tests/dist.sh \
    tests/library_python.sh \
    tests/abi.sh \
    tests/add_filter.sh \
    tests/layers.sh \
    tests/pages.sh \
    tests/completion.sh \
    tests/plot.sh \
    tests/docs.sh \
    tests/numpy.sh \
    tests/verify.sh \
    tests/png_readers.sh \
    tests/fuzz.sh \
    tests/faults.sh \
    tests/batch.sh \
    tests/batch_resume.sh \
    tests/batch_bar.sh \
    tests/hostile_batch.sh \
    tests/shard.sh \
    tests/recipes.sh \
    tests/mpi.sh \
    tests/mpi_killed.sh \
    tests/mpi_image.sh \
    tests/gpu_faults.sh \
    tests/doc_commands.sh \
    tests/tour.sh; do
    start=$SECONDS
    [ -z "${GF_COUNTS:-}" ] || export GCOV_PREFIX=$GF_COUNTS/${script##*/}
    timeout 900 "$script" "$build" >"$log/$(basename "$script")" 2>&1
    code=$?
    read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' \
        "$log/$(basename "$script")" | tail -n 1)
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
    if [ $code -ne 0 ] || [ -z "${p:-}" ]; then
        [ "${f:-0}" -gt 0 ] || failed=$((failed + 1))
        cat "$log/$(basename "$script")"
    fi
    echo "$(basename "$script"): ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped (exit $code, $((SECONDS - start)) s)"
    grep -h '^SKIP' "$log/$(basename "$script")"
    p= f= s=
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
