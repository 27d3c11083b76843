#!/usr/bin/env bash
# Ranks that are slow or stopped: tests/system/mpi_slow.sh BUILD. The other ranks do not run too far ahead, and complete
# the job. (transports.sh: killed ranks.)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
images=100
. tests/support/batch_run.sh
need_ranks
make_slow

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
    ranks 3 axis-sum --files-from list --axis x --json --threads 1 >record 2>stderr &
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
    picture tall2.pgm $'P5\n1 100000\n255' 100000 "a tall picture"
    { echo late.pgm; yes tall2.pgm | head -n 1600; } >list
    ranks 3 axis-sum --files-from list --axis x --json --threads 1 >/dev/null 2>stderr &
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
    ranks 3 smooth --files-from names -O stopped --name '{index}{ext}' --threads 1 2>stderr &
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
    rm -rf alike && gpufilter smooth slow/*.pgm -O alike -q
    for i in 1 7 400 2000 8400; do
        cmp stopped/$i.pgm "alike/$(printf %03d $(((i - 1) % 120 + 1))).pgm" || return 1
    done
}

picture tall.pgm $'P5\n1 1000000\n255' 1000000 "a tall picture"
check "many results are held back" held_back 5000 grey/008.pgm
check "large results are held back" held_back 14 tall.pgm
if grep -q fsanitize "$build/config"; then
    skip 1 "memory of results that are held back: a sanitizer is on"
else
    check "memory of results that are held back" held_bytes
fi
check "rank 1 is stopped for a while" stopped 1
check "rank 2 is stopped for a while" stopped 2
check_summary
