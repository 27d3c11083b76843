#!/usr/bin/env bash
# Batches that do not end as they should, and are run again: tests/batch_resume.sh BUILD. By signals whenever, with records
# that are torn or cut off, and with files that change meanwhile.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/batch_run.sh

gpufilter smooth -R in --out-dir threads1 --threads 1 -q 2>/dev/null

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
    ! grep -q 'exists already' errors && same often
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
        until [ -e ended/.gpufilter-done ] || ! kill -0 $program 2>/dev/null; do :; done
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

# A line that is torn, as by a disk that was full, and one that was never written: these outputs are nobody's, and
# stay until they are gone or --force is given.
unknown() { # once without its line
    gpufilter smooth -R in -O torn --resume 2>sum
    summary 0 31 269 sum && [ "$(grep -c 'pgm: exists already, and is not as a run' sum)" -eq 1 ] && same torn || return 1
    gpufilter smooth -R in -O torn --resume --force 2>sum
    summary 1 30 269 sum && same torn || return 1
    gpufilter smooth -R in -O torn --resume 2>sum
    summary 0 30 270 sum
}
torn() {
    rm -rf torn && cp -a threads1 torn && truncate -s -5 torn/.gpufilter-done
    unknown
}
unwritten() {
    rm -rf torn && cp -a threads1 torn
    grep -v ' 0/007.pgm$' threads1/.gpufilter-done >torn/.gpufilter-done
    unknown
}
check "a torn line" torn
check "a line never written" unwritten

# What a power failure may leave: less of an output, or one with gaps, of the time that was noted. It is ours, and made
# again; what somebody cut later is not ours.
cut_off() {
    rm -rf torn && gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn -q && cp -p torn/008.pgm kept && truncate -s 50 torn/008.pgm
    gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn --resume 2>sum
    summary 0 1 1 sum && touch -r kept torn/008.pgm || return 1
    gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn --resume 2>sum
    summary 1 0 1 sum && cmp torn/008.pgm kept
}
with_gaps() {
    rm -rf torn && gpufilter smooth large.pgm -O torn -q && gpufilter smooth large.pgm -O torn --resume 2>sum && summary 0 0 1 sum &&
        cp -p torn/large.pgm kept && fallocate -p -o 65536 -l 65536 torn/large.pgm && touch -r kept torn/large.pgm &&
        ! cmp -s torn/large.pgm kept && gpufilter smooth large.pgm -O torn --resume 2>sum && summary 1 0 0 sum &&
        cmp torn/large.pgm kept
}
check "cut off by a power failure" cut_off
{ printf 'P5\n500 500\n255\n' && head -c 250000 /dev/urandom; } >large.pgm
if cp large.pgm gaps && fallocate -p -o 65536 -l 65536 gaps 2>/dev/null; then
    check "gaps left by a power failure" with_gaps
else
    skip 1 "gaps left by a power failure: the file system makes none"
fi

# What somebody put under the name of an output that was never begun is kept.
never_begun() {
    gpufilter smooth in/3/003.pgm in/1/001.pgm in/1/008.pgm -O never --fail-fast --threads 1 -q 2>/dev/null
    [ -z "$(ls never)" ] && echo mine >never/008.pgm
    gpufilter smooth in/3/003.pgm in/1/001.pgm in/1/008.pgm -O never --resume 2>sum
    [ $? -eq 1 ] && summary 1 2 0 sum && [ "$(cat never/008.pgm)" = mine ]
}
check "not begun, and made by somebody else" never_begun

# What replaces itself: an input that was never begun, and changed since, is not taken for its output.
itself() {
    mkdir itself && cp in/3/003.pgm in/1/001.pgm itself
    gpufilter smooth itself/003.pgm itself/001.pgm -O itself --force --fail-fast --threads 1 -q 2>/dev/null
    cmp itself/001.pgm in/1/001.pgm && cp in/1/008.pgm itself/001.pgm
    gpufilter smooth itself/*.pgm -O itself --resume --force 2>sum
    summary 1 1 0 sum && cmp itself/001.pgm want/1/008.pgm || return 1
    gpufilter smooth itself/*.pgm -O itself --resume --force 2>sum
    summary 0 1 1 sum && cmp itself/001.pgm want/1/008.pgm
}
check "changed in place, and never begun" itself

# Killed between the line of an output and its new name: there is what was there, and it is still known.
between() {
    gpufilter smooth in/1/001.pgm -O between -q
    cp -a between later
    gpufilter smooth in/1/001.pgm -O later --resume --radius 3 -q
    tail -n 1 later/.gpufilter-done >>between/.gpufilter-done
    gpufilter smooth in/1/001.pgm -O between --resume 2>sum && summary 0 0 1 sum && cmp between/001.pgm want/1/001.pgm &&
        gpufilter smooth in/1/001.pgm -O between --resume --radius 3 2>sum && summary 1 0 0 sum &&
        cmp between/001.pgm later/001.pgm && ! cmp -s later/001.pgm want/1/001.pgm
}
check "killed between a line and its name" between

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
    [ $? -eq 1 ] && summary 1 1 0 sum && grep -q 'late/again.pgm: exists already' sum || return 1
    gpufilter smooth again.pgm -O late --resume 2>sum && summary 0 0 1 sum
}
outrun_resumed() {
    rm -rf late && meanwhile another --resume && summary 1 0 1 sum && cmp late/again.pgm want/1/001.pgm || return 1
    touch again.pgm && rm late/pipe.pgm
    meanwhile another --resume && summary 1 0 1 sum || return 1
    rm -rf late && mkdir late && ! meanwhile somebody --resume && summary 1 1 0 sum && [ "$(cat late/again.pgm)" = mine ]
}
appeared() {
    rm -rf late && ! meanwhile somebody && summary 1 1 0 sum && [ "$(cat late/again.pgm)" = mine ] || return 1
    rm -rf late && meanwhile somebody --force && summary 2 0 0 sum && cmp late/again.pgm want/1/001.pgm
}
changed() {
    rm -rf late && another && touch again.pgm && ! meanwhile somebody --resume && summary 1 1 0 sum &&
        grep -q 'late/again.pgm: was changed while' sum && [ "$(cat late/again.pgm)" = mine ] || return 1
    rm late/pipe.pgm && meanwhile somebody --resume --force && summary 2 0 0 sum && cmp late/again.pgm want/1/001.pgm
}
check "another run is first" outrun
check "another run is first, with --resume" outrun_resumed
check "a file appears; under --force it is replaced" appeared
check "a file is changed while it is made again" changed

check_sum
