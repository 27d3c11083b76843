#!/usr/bin/env bash
# Ranks that are slow, stopped or killed: tests/system/mpi_killed.sh BUILD. The other ranks do not run too far ahead;
# they complete the job or end, and the job can be resumed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/mpi_batch.sh

# ---- output in order, with limited read-ahead ------------------------------------------------------

# Wait until the ranks are idle.
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

# The first image arrives late. The results of later images are held back; when they exceed a limit, no more images
# are started, so the last one is not opened.
held_back() { # HOW_MANY FILE
    local job fd opened=no
    rm -f late.pgm last.pgm && mkfifo late.pgm last.pgm
    { echo late.pgm; yes "$2" | head -n "$1"; echo last.pgm; } >list
    mpi 3 axis-sum --files-from list --axis x --json --threads 1 >record 2>stderr &
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

# The limit also bounds rank 0's memory, for any number of items per share.
held_bytes() {
    local job fd first before=0 now=1
    rm -f late.pgm && mkfifo late.pgm
    { printf 'P5\n1 100000\n255\n' && tail -c 100000 tall.pgm; } >tall2.pgm
    { echo late.pgm; yes tall2.pgm | head -n 1600; } >list
    mpi 3 axis-sum --files-from list --axis x --json --threads 1 >/dev/null 2>stderr &
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

# ---- a stopped rank --------------------------------------------------------------------------------

# A stopped rank keeps its items, and the other ranks process the rest. The images are small, so that messages to it
# are in flight. The last image comes through a pipe, so that no rank ends while this shell is slower than the ranks.
stopped() { # RANK
    local job victim code i now
    rm -rf stopped last.pgm && mkfifo last.pgm
    { for _ in $(seq 70); do ls slow/*.pgm; done; echo last.pgm; } >names
    mpi 3 smooth --files-from names -O stopped --name '{index}{ext}' --threads 1 2>stderr &
    job=$!
    within 30 has_files stopped 200
    victim=$(rank_of $job "$1")
    for _ in 1 2 3 4 5 6 7 8; do
        kill -STOP "$victim"
        now=$(ls stopped | wc -l)
        within 30 has_files stopped $((now < 7800 ? now + 200 : 8000)) # all but a share of the stopped rank
        code=$?
        kill -CONT "$victim"
        [ $code = 0 ] || break
        sleep 0.01
    done
    timeout 60 bash -c 'cat slow/001.pgm >last.pgm' || code=1
    wait $job && [ $code = 0 ] && summary 8401 0 0 stderr ' on 3 ranks' || return 1
    rm -rf alike && plain smooth slow/*.pgm -O alike -q
    for i in 1 7 400 2000 8400; do
        cmp stopped/$i.pgm "alike/$(printf %03d $(((i - 1) % 120 + 1))).pgm" || return 1
    done
}

# ---- killed ranks ----------------------------------------------------------------------------------

rank_of() { # JOB RANK: print its process
    local process
    for process in $(children "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -x "OMPI_COMM_WORLD_RANK=$2" >/dev/null && echo "$process"
    done
}
children() { # JOB: print its descendants
    local process
    for process in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
        echo "$process"
        children "$process"
    done
}
all_under_way() { # JOB
    local process
    for process in $(children "$1"); do
        count_unfinished "$process"
    done | awk '{n += $1} END {print n + 0}'
}
holder_of() { # JOB FILE: print the process that has FILE open
    local process
    for process in $(children "$1"); do
        ls -l "/proc/$process/fd" 2>/dev/null | grep "$2\$" >/dev/null && echo "$process"
    done
}

# Kill a rank in the middle of an image that comes through a pipe, after the other images are done.
killed() { # TARGET: holder, other (not rank 0), first
    local job fd holder victim code end
    rm -rf part whole pipe.pgm && mkfifo pipe.pgm
    # By default, mpirun may leave the other ranks only a few milliseconds to end.
    OMPI_MCA_odls_base_sigkill_timeout=2 mpi 3 smooth slow/0*.pgm pipe.pgm slow/1*.pgm -O part --threads 1 2>stderr &
    job=$!
    exec {fd}>pipe.pgm
    head -c 300 slow/001.pgm >&$fd
    under_way() { [ "$(all_under_way $job)" = 1 ] && has_files part 120; }
    within 30 under_way
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
    cat stderr
    echo "exit $code, $((end - SECONDS)) seconds before the end, $(litter part) temporary files"
    [ $code -ne 0 ] && [ $SECONDS -lt $end ] && [ "$(ls part | wc -l)" = 120 ] && [ ! -e part/pipe.pgm ] || return 1
    # Ranks that were not killed remove their temporary files.
    [ "$victim" = "$holder" ] || [ "$(litter part)" = 0 ] || return 1
    rm pipe.pgm && cp slow/001.pgm pipe.pgm
    mpi 3 smooth slow/0*.pgm pipe.pgm slow/1*.pgm -O part --threads 1 --resume 2>stderr && summary 1 0 120 stderr || return 1
    plain smooth slow/*.pgm pipe.pgm -O whole -q && same whole part
}

# Kill another rank each time, at arbitrary times. The other ranks may continue for up to a second.
killed_often() {
    local i job before killed_jobs=0 how="many/*.pgm --radius 127 --axis xy --threads 1"
    for i in $(seq 300); do ln "slow/$(printf %03d $((1 + i % 120))).pgm" many/$i.pgm; done
    # shellcheck disable=SC2086 # words
    plain smooth $how -O all -q
    mkdir often
    for i in 1 2 3; do
        before=$(ls often | wc -l)
        # shellcheck disable=SC2086
        mpi 3 smooth $how -O often --backend golden --resume 2>stderr &
        job=$!
        until [ "$(ls often | wc -l)" -ge $((before + 20)) ] || ! kill -0 $job; do sleep 0.01; done
        kill -KILL "$(rank_of $job $((i % 3)))"
        wait $job || killed_jobs=$((killed_jobs + 1))
        for file in often/*.pgm; do cmp "$file" "all/${file#often/}" || return 1; done
        ls often | wc -l
    done
    [ $killed_jobs -ge 2 ] || return 1
    # shellcheck disable=SC2086
    mpi 2 smooth $how -O often --resume 2>stderr && same all often
}

test_killed() {
    make_pictures
    make_slow
    mkdir many
    { printf 'P5\n1 1000000\n255\n' && head -c 1000000 < <(yes "a tall picture"); } >tall.pgm
    check "many results are held back" held_back 5000 same/12.pgm
    check "large results are held back" held_back 14 tall.pgm
    if grep -q fsanitize "$build/config"; then
        skip 1 "memory of results that are held back: a sanitizer is on"
    else
        check "memory of results that are held back" held_bytes
    fi
    check "rank 1 is stopped for a while" stopped 1
    check "rank 2 is stopped for a while" stopped 2
    check "a rank is killed in the middle of its image" killed holder
    check "another rank is killed" killed other
    check "rank 0 is killed" killed first
    check "killed repeatedly" killed_often
}

test_killed
check_summary
