#!/usr/bin/env bash
# Signals in the middle of a run: tests/signals.sh BUILD. Each ends the program with 128 + n, leaves what
# was there before, and no temporary file.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=$(cd "${1:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
ulimit -c 0
passed=0 failed=0

for signal in HUP INT QUIT PIPE ALRM TERM USR1 USR2 XCPU; do
    rm -f in out.png
    mkfifo in
    echo precious >out.png
    # A shell's background jobs ignore INT and QUIT; the program leaves ignored signals ignored.
    env --default-signal "$build/gpufilter" smooth --force in out.png 2>/dev/null &
    program=$!
    exec 9>in
    head -c 9999 "$root/samples/scene.png" >&9
    for _ in $(seq 200); do
        compgen -G '.out.png.gpufilter-*' >/dev/null && break
        sleep 0.02
    done
    before=$(compgen -G '.out.png.gpufilter-*' | wc -l)
    kill -s $signal $program
    wait $program 2>/dev/null
    code=$?
    exec 9>&-
    want=$((128 + $(kill -l $signal)))
    if [ "$before" -eq 1 ] && [ $code -eq $want ] && [ "$(cat out.png)" = precious ] &&
        [ "$(ls -A)" = $'in\nout.png' ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $signal: $before temporary files before, exit $code (want $want), left:" $(ls -A)
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
