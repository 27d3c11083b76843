#!/usr/bin/env bash
# Ranks that are late, stopped or killed: tests/system/mpi_killed.sh BUILD. The others do not run too far ahead, do the rest, or
# end; and what they leave can be resumed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/mpi_batch.sh

# ---- one after the other, and not too far ahead ----------------------------------------------------

# Waits until the ranks have nothing to do.
until_idle() { # JOB
    local process before now=-100
    for _ in $(seq 200); do
        sleep 0.5
        before=$now
        now=0
        for process in $(children "$1"); do
            now=$((now + $(cut -d ' ' -f 14 "/proc/$process/stat")))
        done
        [ $((now - before)) -ge 10 ] || return
    done
}

# The first picture comes late. What the others give waits for it, and when that is much, no others are begun: nobody
# reads the last one.
held_back() { # HOW_MANY FILE
    local job fd opened=no
    rm -f late.pgm last.pgm && mkfifo late.pgm last.pgm
    { echo late.pgm; yes "$2" | head -n "$1"; echo last.pgm; } >list
    mpi 3 axis-sum --files-from list --axis x --json --threads 1 >record 2>told &
    job=$!
    exec {fd}>late.pgm
    until_idle $job
    ! timeout 0.2 bash -c 'exec 9>last.pgm' || opened=yes
    cat "$2" >&$fd
    exec {fd}>&-
    timeout 60 bash -c "cat $2 >last.pgm"
    wait $job && [ $opened = no ] && [ "$(grep -o '"result".*' record | uniq | wc -l)" = 1 ] &&
        diff list <(cut -c 1-200 record | sed 's/.*"files": \["\([^"]*\).*/\1/')
}

# Rank 0's memory, however many items a share might have.
held_bytes() {
    local job fd first before=0 now=1
    rm -f late.pgm && mkfifo late.pgm
    { printf 'P5\n1 100000\n255\n' && tail -c 100000 tall.pgm; } >tall2.pgm
    { echo late.pgm; yes tall2.pgm | head -n 1600; } >list
    mpi 3 axis-sum --files-from list --axis x --json --threads 1 >/dev/null 2>told &
    job=$!
    exec {fd}>late.pgm
    sleep 1
    first=$(rank_of $job 0)
    while [ "$now" -gt "$before" ] && [ "$now" -lt 220000 ]; do
        sleep 1.5
        before=$now
        now=$(sed -n 's/VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$first/status")
        echo "$now kB"
    done
    kill "$(children $job | head -n 1)"
    wait $job
    exec {fd}>&-
    [ "$now" -gt 50000 ] && [ "$now" -lt 220000 ]
}

# ---- a rank that is stopped ------------------------------------------------------------------------

made_at_least() { # COUNT FOLDER: within half a minute
    for _ in $(seq 1500); do
        [ "$(ls "$2" 2>/dev/null | wc -l)" -lt "$1" ] || return 0
        sleep 0.02
    done
    return 1
}
# It keeps what it has, and the others do the rest. Of small pictures, so that something is on its way to it.
stopped() { # RANK
    local job victim code i
    rm -rf stopped
    for _ in $(seq 70); do ls slow/*.pgm; done >names
    mpi 3 smooth --files-from names -O stopped --name '{index}{ext}' --threads 1 2>told &
    job=$!
    made_at_least 200 stopped
    victim=$(rank_of $job "$1")
    for _ in 1 2 3 4 5 6 7 8; do
        kill -STOP "$victim"
        made_at_least $(($(ls stopped | wc -l) + 200)) stopped
        code=$?
        kill -CONT "$victim"
        [ $code = 0 ] || break
        sleep 0.01
    done
    wait $job && [ $code = 0 ] && summary 8400 0 0 told ' on 3 ranks' || return 1
    rm -rf alike && plain smooth slow/*.pgm -O alike -q
    for i in 1 7 400 2000 8400; do
        cmp stopped/$i.pgm "alike/$(printf %03d $(((i - 1) % 120 + 1))).pgm" || return 1
    done
}

# ---- killed ----------------------------------------------------------------------------------------

rank_of() { # JOB RANK: its process
    local process
    for process in $(children "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -x "OMPI_COMM_WORLD_RANK=$2" >/dev/null && echo "$process"
    done
}
children() { # and theirs
    local process
    for process in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
        echo "$process"
        children "$process"
    done
}
all_under_way() { # JOB
    local process
    for process in $(children "$1"); do
        under_way "$process"
    done | awk '{n += $1} END {print n + 0}'
}
holder_of() { # JOB FILE: who has it open
    local process
    for process in $(children "$1"); do
        ls -l "/proc/$process/fd" 2>/dev/null | grep "$2\$" >/dev/null && echo "$process"
    done
}

# In the middle of a picture that comes through a pipe, when the others are done.
killed() { # WHO: holder, other (but rank 0), first
    local job fd holder victim code end
    rm -rf part whole pipe.pgm && mkfifo pipe.pgm
    # Else mpirun may leave the others a few milliseconds to end.
    OMPI_MCA_odls_base_sigkill_timeout=2 mpi 3 smooth slow/0*.pgm pipe.pgm slow/1*.pgm -O part --threads 1 2>told &
    job=$!
    exec {fd}>pipe.pgm
    head -c 300 slow/001.pgm >&$fd
    for _ in $(seq 1000); do
        [ "$(all_under_way $job)" = 1 ] && [ "$(ls part | wc -l)" = 120 ] && break
        sleep 0.02
    done
    holder=$(holder_of $job pipe.pgm)
    for victim in $holder $(rank_of $job 0) $(rank_of $job 1) $(rank_of $job 2); do
        case $1 in
        holder) break ;;
        first) [ "$victim" != "$(rank_of $job 0)" ] || break ;;
        other) [ "$victim" = "$holder" ] || [ "$victim" = "$(rank_of $job 0)" ] || break ;;
        esac
    done
    end=$((SECONDS + 20))
    kill -KILL "$victim"
    wait $job
    code=$?
    exec {fd}>&-
    cat told
    echo "exit $code, $((end - SECONDS)) seconds before the end, $(litter part) temporary files"
    [ $code -ne 0 ] && [ $SECONDS -lt $end ] && [ "$(ls part | wc -l)" = 120 ] && [ ! -e part/pipe.pgm ] || return 1
    # Whoever was not killed has taken its own away.
    [ "$victim" = "$holder" ] || [ "$(litter part)" = 0 ] || return 1
    rm pipe.pgm && cp slow/001.pgm pipe.pgm
    mpi 3 smooth slow/0*.pgm pipe.pgm slow/1*.pgm -O part --threads 1 --resume 2>told && summary 1 0 120 told || return 1
    plain smooth slow/*.pgm pipe.pgm -O whole -q && same whole part
}

# Whenever, and another one each time. Until the others are ended they go on for up to a second.
killed_often() {
    local i job before struck=0 how="many/*.pgm --radius 127 --axis xy --threads 1"
    for i in $(seq 300); do ln "slow/$(printf %03d $((1 + i % 120))).pgm" many/$i.pgm; done
    # shellcheck disable=SC2086 # words
    plain smooth $how -O all -q
    mkdir often
    for i in 1 2 3; do
        before=$(ls often | wc -l)
        # shellcheck disable=SC2086
        mpi 3 smooth $how -O often --backend golden --resume 2>told &
        job=$!
        until [ "$(ls often | wc -l)" -ge $((before + 20)) ] || ! kill -0 $job; do sleep 0.01; done
        kill -KILL "$(rank_of $job $((i % 3)))"
        wait $job || struck=$((struck + 1))
        for file in often/*.pgm; do cmp "$file" "all/${file#often/}" || return 1; done
        ls often | wc -l
    done
    [ $struck -ge 2 ] || return 1
    # shellcheck disable=SC2086
    mpi 2 smooth $how -O often --resume 2>told && same all often
}

test_killed() {
    make_pictures
    make_slow
    mkdir many
    { printf 'P5\n1 1000000\n255\n' && head -c 1000000 < <(yes "a tall picture"); } >tall.pgm
    check "many that are held back" held_back 5000 same/12.pgm
    check "much that is held back" held_back 14 tall.pgm
    if grep -q fsanitize "$build/config"; then
        skip 1 "memory of what is held back: not with a sanitizer"
    else
        check "memory of what is held back" held_bytes
    fi
    check "rank 1 is stopped for a while" stopped 1
    check "rank 2 is stopped for a while" stopped 2
    check "a rank is killed in the middle of its picture" killed holder
    check "another rank is killed" killed other
    check "rank 0 is killed" killed first
    check "killed again and again" killed_often
}

test_killed
check_sum
