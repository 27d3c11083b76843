#!/usr/bin/env bash
# Signals during a run: tests/system/signals.sh BUILD. Each ends the program with exit code 128 + n, keeps existing
# files and leaves no temporary file, also when it is sent several times.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
root=$PWD
build=$(cd "${1:-build}" && pwd)
cd "$work" || exit
ulimit -c 0

try() { # SIGNAL COUNT [COMMAND...]: run the program as a child of COMMAND
    local signal=$1 times=$2 target
    shift 2
    rm -f in out.png
    mkfifo in
    echo precious >out.png
    # A shell's background jobs ignore INT and QUIT; the program leaves ignored signals ignored.
    "$@" env --default-signal "$build/gpufilter" smooth --force in out.png 2>/dev/null &
    program=$!
    exec 9>in
    head -c 9999 "$root/samples/scene.png" >&9
    for _ in $(seq 200); do
        target=$program
        [ $# -eq 0 ] || target=$(($(cat /proc/$program/task/$program/children)))
        before=$(count_unfinished "$target")
        [ "$before" -eq 0 ] || break
        sleep 0.02
    done
    # shellcheck disable=SC2046 # words
    kill -s $signal $(yes $target | head -n $times) 2>/dev/null
    [ $# -eq 0 ] || exec 9>&- # the program would otherwise wait for more input
    wait $program 2>/dev/null
    code=$?
    exec 9>&-
    want=$((128 + $(kill -l $signal)))
    if [ "$before" -eq 1 ] && [ $code -eq $want ] && [ "$(cat out.png)" = precious ] &&
        [ "$(ls -A)" = $'in\nout.png' ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $times times $signal $*: $before temporary outputs, exit $code (want $want), left:" $(ls -A)
    fi
}

for signal in HUP INT QUIT PIPE ALRM TERM USR1 USR2 XCPU; do
    try $signal 1
    try $signal 3
done

# In the first process of a container, the default action of a signal does nothing.
container=(unshare --pid --fork)
if "${container[@]}" true 2>/dev/null; then
    try TERM 1 "${container[@]}"
    try INT 3 "${container[@]}"
else
    skip 2 "the first process of a container: no permission for unshare"
fi
check_summary
