#!/usr/bin/env bash
# Run the tests under valgrind's memcheck: tests/long/valgrind.sh BUILD [TEST...]. All cmocka tests in a short form,
# except those of the sandbox, which rejects valgrind; then every case of every filter as a command (golden.sh).
# Errors fail, and memory leaks of commands (LeakSanitizer checks the tests). A test that exceeds LIMIT seconds
# (default: 600) is skipped if it has no error so far. Takes about half an hour on two cores. Prints "N passed, N
# failed, N skipped" for tests and commands at the end.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
shift
export LIMIT=${LIMIT:-600} GF_TEST_ROUNDS=1 GF_TEST_NO_SANDBOX=1 log=$build/tests/log/valgrind build
rm -rf "$log"
mkdir -p "$log"

memcheck() {
    timeout -s INT "$LIMIT" valgrind --quiet --error-exitcode=99 --suppressions=tests/support/valgrind.txt "$@"
}
export -f memcheck

run_test() { # NAME
    case $1 in # one round cannot meet all kinds of data that they count
        test_tiff_directory) export GF_TEST_ROUNDS=2000 ;;
        test_inflate | test_png_parallel | test_tiff_read) export GF_TEST_ROUNDS=25 ;;
    esac
    memcheck --log-file="$log/$1.memcheck" "$build/tests/$1" >"$log/$1" 2>&1
    local code=$?
    if [ -s "$log/$1.memcheck" ] || { [ $code -ne 0 ] && [ $code -ne 124 ]; }; then
        echo "FAILED $1 (exit $code)"
        head -n 30 "$log/$1.memcheck"
        grep -a 'ERROR\|FAILED' "$log/$1" | head -n 5
    elif [ $code -eq 124 ]; then
        echo "SKIP $1: not finished after $LIMIT s, with $(grep -ac '^\[       OK' "$log/$1") tests passed"
    else
        echo "ok $1"
    fi
}
export -f run_test

if [ $# -eq 0 ]; then
    for source in tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/long/test_*.c; do
        name=$(basename "$source" .c)
        case $name in
            test_sandbox* | test_stb* | test_hostile_program | test_hostile_rows | test_inspect | test_float_env | test_jpeg_metadata) echo "SKIP $name: the sandbox" >>"$log/all" ;;
            test_hostile_png | test_hostile_png_cost) echo "SKIP $name: limits of time" >>"$log/all" ;;
            test_cuda*) ;; # they need a device
            *) set -- "$@" "$name" ;;
        esac
    done
    commands=yes
fi
cat "$log/all" 2>/dev/null
printf '%s\n' "$@" | xargs -P "$(nproc)" -I {} bash -c 'run_test {}' | tee -a "$log/all"

if [ -n "${commands:-}" ]; then
    mkdir "$log/bin" "$log/bin/tests"
    ln -s "$build/tests/list_cases" "$log/bin/tests"
    cat >"$log/bin/gpufilter" <<W
#!/usr/bin/env bash
memcheck --leak-check=full --errors-for-leak-kinds=definite,indirect --show-leak-kinds=definite,indirect \\
    --log-file="$log/command.%p.memcheck" "$build/gpufilter" "\$@"
W
    chmod +x "$log/bin/gpufilter"
    tests/system/golden.sh "$log/bin" >"$log/golden" 2>&1
    tail -n 1 "$log/golden"
    bad=$(find "$log" -name 'command.*.memcheck' -size +0 | wc -l)
    if [ "$bad" -ne 0 ] || ! grep -q ' 0 failed' "$log/golden"; then
        echo "FAILED golden.sh: $bad commands with reports in $log" | tee -a "$log/all"
        find "$log" -name 'command.*.memcheck' -size +0 -exec head -n 20 {} \; | head -n 60
    else
        echo "ok golden.sh: $(find "$log" -name 'command.*.memcheck' | wc -l) commands" | tee -a "$log/all"
    fi
fi
failed=$(grep -c '^FAILED' "$log/all")
echo "$(grep -c '^ok' "$log/all") passed, $failed failed, $(grep -c '^SKIP' "$log/all") skipped"
[ "$failed" -eq 0 ]
