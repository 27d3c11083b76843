#!/usr/bin/env bash
# Batches that do not end as they should, and are run again: tests/system/batch_resume.sh BUILD. By signals whenever, and with files
# that change meanwhile.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/batch_run.sh

# Killed in the middle of as many pictures as there are threads, by a signal, and run again.
litter() { find "$1" -name '.*.tmp' | wc -l; }
for signal in KILL TERM INT HUP; do
    for threads in 1 4; do
        rm -rf some out
        mkdir some
        cp in/1/*[124-9].pgm in/2/*[124-9].pgm some
        files=(some/*)
        half=$((${#files[@]} / 2))
        for ((t = 0; t < threads; t++)); do
            mv "${files[half + t]}" held$t
            mkfifo "${files[half + t]}"
        done
        # A shell's background jobs ignore INT; the program leaves ignored signals ignored.
        env --default-signal gpufilter smooth some/* -O out --threads $threads 2>/dev/null &
        program=$!
        descriptors=()
        for ((t = 0; t < threads; t++)); do
            exec {fd}>"${files[half + t]}"
            head -c 30 held$t >&$fd
            descriptors+=("$fd")
        done
        for _ in $(seq 500); do
            [ "$(under_way $program)" = $threads ] && [ "$(ls out | wc -l)" -ge $half ] && break
            sleep 0.01
        done
        begun=$(under_way $program) named=$(litter out)
        kill -s $signal $program
        wait $program 2>/dev/null
        code=$?
        for fd in "${descriptors[@]}"; do exec {fd}>&-; done
        left=$(litter out) made=$(ls out | wc -l)
        for ((t = 0; t < threads; t++)); do mv -f held$t "${files[half + t]}"; done
        ls -i out >before
        gpufilter smooth some/* -O out --resume 2>sum
        resumed=$?
        ls -i out >after
        gpufilter smooth some/* -O whole$signal$threads -q
        killed() { [ "$begun" -eq $threads ] && [ $code -eq $((128 + $(kill -l $signal))) ] && [ "$made" -eq $half ]; }
        # Only temporary names outlive the process.
        clean() { [ "$left" -eq 0 ] || { [ $signal = KILL ] && [ "$left" -eq "$named" ]; }; }
        rest() { [ $resumed -eq 0 ] && summary $((${#files[@]} - half)) 0 $half sum &&
            [ -z "$(comm -23 <(sort before) <(sort after))" ] && diff -r -x '.*' out whole$signal$threads; }
        check "$signal, $threads threads: exit code and what was there" killed
        check "$signal, $threads threads: no litter" clean
        check "$signal, $threads threads: the rest, and only that, is done" rest
    done
done

# Killed whenever, again and again: what is named is whole, and in the end all is as it should be.
kill_often() {
    rm -rf often
    for i in $(seq 60); do
        timeout -s KILL "0.0$((1 + i % 6))" gpufilter smooth -R in -O often --resume --threads 3 -q 2>/dev/null
        code=$?
        for file in $(find often -name '*.pgm'); do
            cmp "$file" "want/${file#often/}" || return 1
        done
        [ $code -ge 128 ] || break
    done
    gpufilter smooth -R in -O often --resume -q 2>errors
    ! grep -q 'use --force to replace it' errors && same often
}
check "killed again and again" kill_often

# Ended by a signal whenever, no thread leaves a file that it was about to make, and none complains.
end_often() {
    for i in $(seq 40); do
        rm -rf ended
        timeout -s TERM --preserve-status "0.0$((1 + i % 9))" gpufilter smooth in/[0-4]/*[124-9].pgm -O ended --threads 8 \
            -q 2>errors
        [ "$(litter ended 2>/dev/null)" = 0 ] && [ ! -s errors ] || { cat errors; ls -A ended; return 1; }
    done
}
check "ended again and again" end_often

# Nor if more signals come while the first is being dealt with, some a few microseconds after it: the process ends by
# one of them, when all is removed. A single thread is the one that is hit.
end_by_many() {
    local ended=0
    for i in $(seq 80); do
        rm -rf ended
        env --default-signal gpufilter smooth in/[0-4]/*[124-9].pgm -O ended --threads $((i % 4 ? 1 : 8)) -q 2>errors &
        program=$!
        # Sooner, it might be the shell that is hit, on its way to the program.
        until compgen -G "ended/*.pgm" >/dev/null || ! kill -0 $program 2>/dev/null; do :; done
        for signal in {TERM,INT,TERM,HUP}-{1..9}; do
            kill -s ${signal%-*} $program $program
        done 2>/dev/null
        wait $program 2>/dev/null
        code=$?
        case $code in 129 | 130 | 143) ended=$((ended + 1)) ;; esac
        [ $code -ne 1 ] && [ "$(litter ended)" = 0 ] && [ ! -s errors ] || {
            echo "try $i: exit $code"
            cat errors
            ls -A ended
            return 1
        }
    done
    [ $ended -ge 40 ]
}
check "ended by many signals" end_by_many

# One line says how far it came: to the signal's whole process group, as Ctrl-C sends it, once, whatever is under way.
interrupt() { # SIGNAL OUTPUTS COMMAND...: when there are so many; what it says is in errors
    local signal=$1 outputs=$2 program code
    shift 2
    rm -f slow.pgm
    mkfifo slow.pgm
    setsid env --default-signal "$@" >told 2>errors &
    program=$!
    exec 9>slow.pgm # opened for reading: of one thread, what is before it is over
    for _ in $(seq 500); do
        [ "$(ls stopped 2>/dev/null | wc -l)" -lt "$outputs" ] || break
        sleep 0.02
    done
    sleep 0.1
    kill -s "$signal" -- -$program
    wait $program
    code=$?
    exec 9>&-
    [ $code -eq $((128 + $(kill -l "$signal"))) ] || { echo "$signal: exit $code"; cat errors; return 1; }
}
said() { diff <(printf '%s' "$1") <(grep -v 'ends too early' errors); }
interrupted() {
    local files="in/1/001.pgm in/1/008.pgm in/1/043.pgm slow.pgm in/1/015.pgm" resume=$'; --resume continues\n' signal
    gpufilter smooth in/1/001.pgm -k --format jpg - >picture.jpg || return 1
    for signal in INT TERM HUP; do
        rm -rf stopped
        for option in "" --resume; do
            interrupt $signal 2 gpufilter smooth $files -O stopped -j 1 $option && said "gpufilter: interrupted: 2 of 5 done$resume" || return 1
        done
        rm -rf stopped
        interrupt $signal 2 gpufilter smooth in/1/001.pgm slow.pgm picture.jpg -O stopped -j 3 &&
            said "gpufilter: interrupted: 2 of 3 done$resume" || return 1
        rm -rf stopped
        interrupt $signal 2 gpufilter smooth $files -O stopped -j 1 -q && said "" || return 1
        interrupt $signal 0 gpufilter hist in/1/001.pgm slow.pgm -j 1 && said $'gpufilter: interrupted: 1 of 2 done\n' || return 1
        interrupt $signal 0 gpufilter smooth slow.pgm alone.pgm && said "" || return 1
    done
    gpufilter smooth in/1/{001,008,015}.pgm -O stopped -j 1 --resume 2>sum && summary 1 0 2 sum && [ "$(litter stopped)" = 0 ]
}
check "interrupted, and says so" interrupted

# An output counts as finished if it is newer than its input, whoever made it and however; another is made again.
newer() { # DONE SKIPPED: of one input
    gpufilter smooth in/1/001.pgm -O newer --resume 2>sum
    summary "$1" 0 "$2" sum
}
compared() {
    mkdir newer && echo mine >newer/001.pgm && newer 0 1 && [ "$(cat newer/001.pgm)" = mine ] || return 1
    touch -r in/1/001.pgm newer/001.pgm && newer 1 0 && cmp newer/001.pgm want/1/001.pgm || return 1
    : >newer/001.pgm && newer 1 0 && newer 0 1 || return 1
    gpufilter smooth in/1/001.pgm -O newer --resume --radius 3 2>sum && summary 0 0 1 sum && cmp newer/001.pgm want/1/001.pgm || return 1
    touch -d '1 second ago' newer/001.pgm && touch in/1/001.pgm && newer 1 0
}
check "what is newer is skipped, and nothing else" compared

# What replaces itself would be filtered again and again.
itself() {
    mkdir itself && cp in/1/001.pgm itself && ln -s itself linked
    for folder in itself ./itself/. linked; do
        gpufilter smooth itself/001.pgm -O $folder --resume --force 2>sum
        [ $? -eq 2 ] && grep -q '^gpufilter: itself/001.pgm: its output replaces it, which --resume does not support' sum && cmp itself/001.pgm in/1/001.pgm || return 1
    done
}
check "what replaces itself is not resumed" itself

# What happens while a run is under way: it waits for its first input, a pipe.
meanwhile() { # WHAT OPTIONS...
    local happens=$1 program fd
    shift
    rm -f pipe.pgm && mkfifo pipe.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 "$@" 2>sum &
    program=$!
    exec {fd}>pipe.pgm # now it has looked at what is there
    $happens
    cat in/1/008.pgm >&$fd
    exec {fd}>&-
    wait $program
}
another() { gpufilter smooth again.pgm -O late --resume -q; }
somebody() { echo mine >late/again.pgm; }
outrun() {
    cp in/1/001.pgm again.pgm && mkdir late
    meanwhile another
    [ $? -eq 1 ] && summary 1 1 0 sum && grep -q 'late/again.pgm: .*use --force to replace it' sum || return 1
    gpufilter smooth again.pgm -O late --resume 2>sum && summary 0 0 1 sum
}
outrun_resumed() {
    rm -rf late && meanwhile another --resume && summary 1 0 1 sum && cmp late/again.pgm want/1/001.pgm || return 1
    touch again.pgm && rm late/pipe.pgm
    meanwhile another --resume && summary 2 0 0 sum && cmp late/again.pgm want/1/001.pgm
}
appeared() {
    rm -rf late && ! meanwhile somebody && summary 1 1 0 sum && [ "$(cat late/again.pgm)" = mine ] || return 1
    rm -rf late && meanwhile somebody --force && summary 2 0 0 sum && cmp late/again.pgm want/1/001.pgm
}
check "another run is first" outrun
check "another run is first, with --resume" outrun_resumed
check "a file appears; under --force it is replaced" appeared

check_sum
