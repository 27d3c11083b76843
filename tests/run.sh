#!/usr/bin/env bash
# Runs every test of a build, or those named: tests/run.sh BUILD [TEST]... (test_run.c, mpi.sh). Prints a line for each one
# that ended, with the count and the time so far, then one line with the sum, where one test is one cmocka test, one golden
# digest, or one command of a transcript.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:-build}
log=$build/tests/log
mkdir -p "$log"
export LSAN_OPTIONS=${LSAN_OPTIONS-suppressions=$PWD/tests/support/lsan.txt:print_suppressions=0}

tests=(tests/unit/*/test_*.c tests/long/test_*.c # a build folder may hold tests that are no more
    tests/system/golden.sh
    tests/system/transcripts.sh
    tests/system/signals.sh
    tests/system/outputs.sh
    tests/system/outputs_full.sh
    tests/system/progress.sh
    tests/long/kill.sh
    tests/docs/library.sh
    tests/system/install.sh
    tests/system/dist.sh
    tests/docs/library_python.sh
    tests/system/abi.sh
    tests/docs/add_filter.sh
    tests/docs/layers.sh
    tests/docs/pages.sh
    tests/system/completion.sh
    tests/system/plot.sh
    tests/docs/docs.sh
    tests/system/numpy.sh
    tests/system/verify.sh
    tests/system/png_readers.sh
    tests/long/fuzz.sh
    tests/long/faults.sh
    tests/system/batch.sh
    tests/system/batch_resume.sh
    tests/system/batch_bar.sh
    tests/long/hostile_batch.sh
    tests/system/shard.sh
    tests/docs/recipes.sh
    tests/system/mpi.sh
    tests/system/mpi_killed.sh
    tests/system/mpi_image.sh
    tests/long/gpu_faults.sh
    tests/system/make.sh
    tests/docs/doc_commands.sh)
[ $# -le 1 ] || tests=("${@:2}")
tests=("${tests[@]#tests/}")
number=0 passed=0 failed=0 skipped=0 without_gpu=0
wrong=() # tests that failed

cmocka() { # FILE WORD: the number in the last "[  WORD  ] N test(s)" line
    sed -n "s/^\[  $2 *\] \([0-9]*\) test.*/\1/p" "$1" | tail -n 1
}
add() { sed -n "$1" "$2" | awk '{ sum += $1 } END { print sum + 0 }'; } # SED FILE
so_far() { printf '%3d/%d  %2d:%02d  ' $number ${#tests[@]} $((SECONDS / 60)) $((SECONDS % 60)); }

for name in "${tests[@]}"; do
    said=$log/$(basename "$name" .c) start=$SECONDS p='' f='' s=''
    number=$((number + 1))
    [ ! -t 1 ] || printf '\r\033[K%s%s ...' "$(so_far)" "$name"
    command=("tests/$name" "$build")
    [ "$name" = "${name%.c}" ] || command=("$build/tests/$(basename "$name" .c)")
    timeout 900 "${command[@]}" >"$said" 2>&1 # a hang is a failure, not a wait
    code=$?
    if [ "$name" != "${name%.c}" ]; then
        p=$(cmocka "$said" PASSED) f=$(cmocka "$said" FAILED) s=$(cmocka "$said" SKIPPED)
    else
        read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$said" | tail -n 1)
        [ -n "$p" ] || code=1
    fi
    [ $code -eq 0 ] || [ "${f:-0}" -gt 0 ] || f=1
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
    without_gpu=$((without_gpu + $(add 's/^SKIP \([0-9]*\): .*GPU.*/\1/p' "$said")))
    [ ! -t 1 ] || printf '\r\033[K'
    if [ "${f:-0}" -gt 0 ]; then
        wrong+=("$name")
        cat "$said"
    fi
    echo "$(so_far)$name: ${p:-0} passed$([ "${f:-0}" -eq 0 ] || echo ", $f FAILED (exit $code)"), $((SECONDS - start)) s"
    grep -hE '^SKIP|samples compared' "$said" | grep -v '^SKIP .*GPU'
done

not_run=
[ $skipped -eq 0 ] || not_run="; not run: $skipped ($without_gpu need a GPU, $((skipped - without_gpu)): see SKIP)"
if [ $failed -gt 0 ] || [ $passed -eq 0 ]; then
    echo "FAILED: $failed of $((passed + failed)), in ${wrong[*]}$not_run"
    exit 1
fi
echo "all passed: $passed$not_run"
