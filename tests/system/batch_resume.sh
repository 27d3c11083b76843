#!/usr/bin/env bash
# Interrupted batches and --resume: tests/system/batch_resume.sh BUILD. Signals at arbitrary times, and files that
# change during the run. (transports.sh: signals during an image, and SIGKILL.)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/batch_run.sh

# SIGTERM at arbitrary times: no thread leaves a temporary file or prints an error.
end_often() {
    for i in $(seq 40); do
        rm -rf ended
        timeout -s TERM --preserve-status "0.0$((1 + i % 9))" gpufilter smooth in/[0126]/*[124-9].pgm -O ended --threads 8 \
            -q 2>errors
        [ "$(count_temporary ended 2>/dev/null)" = 0 ] && [ ! -s errors ] || { cat errors; ls -A ended; return 1; }
    done
}
check "terminated repeatedly" end_often

# The same with more signals during the cleanup, some a few microseconds after the first. One of the signals ends the
# process after all temporary files are removed. With a single thread, that thread receives all of them.
end_by_many() {
    local ended=0
    for i in $(seq 80); do
        rm -rf ended
        env --default-signal gpufilter smooth in/[0126]/*[124-9].pgm -O ended --threads $((i % 4 ? 1 : 8)) -q 2>errors &
        program=$!
        # An earlier signal might end the shell child before it executes the program.
        until compgen -G "ended/*.pgm" >/dev/null || ! kill -0 $program 2>/dev/null; do :; done
        for signal in {TERM,INT,TERM,HUP}-{1..9}; do
            kill -s ${signal%-*} $program $program
        done 2>/dev/null
        wait $program 2>/dev/null
        code=$?
        case $code in 129 | 130 | 143) ended=$((ended + 1)) ;; esac
        [ $code -ne 1 ] && [ "$(count_temporary ended)" = 0 ] && [ ! -s errors ] || {
            echo "try $i: exit $code"
            cat errors
            ls -A ended
            return 1
        }
    done
    [ $ended -ge 40 ]
}
check "terminated by many signals" end_by_many

# One line reports the progress at the signal. The signal goes to the process group once, as Ctrl-C sends it.
interrupt() { # SIGNAL OUTPUTS COMMAND...: send the signal when OUTPUTS outputs exist; stderr goes to the file errors
    local signal=$1 outputs=$2 program code
    shift 2
    rm -f slow.pgm
    mkfifo slow.pgm
    setsid env --default-signal "$@" >printed 2>errors &
    program=$!
    exec 9>slow.pgm # open succeeded: with one thread, all earlier inputs are finished
    within 20 has_files stopped "$outputs"
    sleep 0.1
    kill -s "$signal" -- -$program
    wait $program
    code=$?
    exec 9>&-
    [ $code -eq $((128 + $(kill -l "$signal"))) ] || { echo "$signal: exit $code"; cat errors; return 1; }
}
errors_equal() { diff <(printf '%s' "$1") <(grep -v 'ends too early' errors); }
interrupted() {
    local files="in/1/001.pgm in/1/008.pgm in/1/043.pgm slow.pgm in/1/015.pgm" resume=$'; --resume continues\n' signal
    gpufilter smooth in/1/001.pgm -k --format jpg - >picture.jpg || return 1
    for signal in INT TERM HUP; do
        rm -rf stopped
        for option in "" --resume; do
            interrupt $signal 2 gpufilter smooth $files -O stopped -j 1 $option && errors_equal "gpufilter: interrupted: 2 of 5 done$resume" || return 1
        done
        rm -rf stopped
        interrupt $signal 2 gpufilter smooth in/1/001.pgm slow.pgm picture.jpg -O stopped -j 3 &&
            errors_equal "gpufilter: interrupted: 2 of 3 done$resume" || return 1
        rm -rf stopped
        interrupt $signal 2 gpufilter smooth $files -O stopped -j 1 -q && errors_equal "" || return 1
        interrupt $signal 0 gpufilter hist in/1/001.pgm slow.pgm -j 1 && errors_equal $'gpufilter: interrupted: 1 of 2 done\n' || return 1
        interrupt $signal 0 gpufilter smooth slow.pgm alone.pgm && errors_equal "" || return 1
    done
    gpufilter smooth in/1/{001,008,015}.pgm -O stopped -j 1 --resume 2>stderr && summary 1 0 2 stderr && [ "$(count_temporary stopped)" = 0 ]
}
check "the progress at an interrupt is printed" interrupted

# An output counts as finished if it is newer than its input, regardless of which run or settings produced it.
# Otherwise it is made again.
newer() { # DONE SKIPPED: resume a batch of one input
    gpufilter smooth in/1/001.pgm -O newer --resume 2>stderr
    summary "$1" 0 "$2" stderr
}
compared() {
    mkdir newer && echo mine >newer/001.pgm && newer 0 1 && [ "$(cat newer/001.pgm)" = mine ] || return 1
    touch -r in/1/001.pgm newer/001.pgm && newer 1 0 && cmp newer/001.pgm want/1/001.pgm || return 1
    : >newer/001.pgm && newer 1 0 && newer 0 1 || return 1
    gpufilter smooth in/1/001.pgm -O newer --resume --radius 3 2>stderr && summary 0 0 1 stderr && cmp newer/001.pgm want/1/001.pgm || return 1
    touch -d '1 second ago' newer/001.pgm && touch in/1/001.pgm && newer 1 0
}
check "only newer outputs are skipped" compared

# --resume rejects an input that replaces itself: it would be filtered again on each run.
itself() {
    mkdir itself && cp in/1/001.pgm itself && ln -s itself linked
    for directory in itself ./itself/. linked; do
        gpufilter smooth itself/001.pgm -O $directory --resume --force 2>stderr
        [ $? -eq 2 ] && grep -q '^gpufilter: itself/001.pgm: its output replaces it, which --resume does not support' stderr && cmp itself/001.pgm in/1/001.pgm || return 1
    done
}
check "--resume rejects an input that replaces itself" itself

# Changes during a run, which waits for its first input, a pipe.
change_during_run() { # ACTION OPTIONS...
    local action=$1 program fd
    shift
    rm -f pipe.pgm && mkfifo pipe.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 "$@" 2>stderr &
    program=$!
    exec {fd}>pipe.pgm # the program has examined the outputs by now
    $action
    cat in/1/008.pgm >&$fd
    exec {fd}>&-
    wait $program
}
concurrent_run() { gpufilter smooth again.pgm -O late --resume -q; }
concurrent_shard() { gpufilter smooth in/1/008.pgm again.pgm -O late --shard 2/2 -q; }
foreign_file() { echo mine >late/again.pgm; }
outrun() {
    cp in/1/001.pgm again.pgm && mkdir late
    change_during_run concurrent_run
    [ $? -eq 1 ] && summary 1 1 0 stderr && grep -q 'late/again.pgm: .*use --force to replace' stderr || return 1
    gpufilter smooth again.pgm -O late --resume 2>stderr && summary 0 0 1 stderr
}
outrun_resumed() {
    local run
    for run in concurrent_run concurrent_shard; do
        rm -rf late && change_during_run $run --resume && summary 1 0 1 stderr && cmp late/again.pgm want/1/001.pgm || return 1
    done
    touch again.pgm && rm late/pipe.pgm
    change_during_run concurrent_run --resume && summary 2 0 0 stderr && cmp late/again.pgm want/1/001.pgm
}
appeared() {
    rm -rf late && ! change_during_run foreign_file && summary 1 1 0 stderr && [ "$(cat late/again.pgm)" = mine ] || return 1
    rm -rf late && change_during_run foreign_file --force && summary 2 0 0 stderr && cmp late/again.pgm want/1/001.pgm
}
check "a concurrent run finishes first" outrun
check "a concurrent run finishes first, with --resume" outrun_resumed
check "a file appears during the run; --force replaces it" appeared

check_summary
