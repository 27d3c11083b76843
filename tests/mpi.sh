#!/usr/bin/env bash
# Several ranks: tests/mpi.sh BUILD. Whatever they do together must be what one process does: files, standard output,
# counts and exit codes. Ranks that are killed, and runs that are resumed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
. tests/mpi_run.sh
build=$(cd "${1:-build}" && pwd)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
if why=$(mpi_missing "$build"); then
    skip 1 "several ranks: $why"
    check_sum
    exit
fi
ulimit -c 0
cd "$work" || exit
mkdir bin && ln -s "$build/gpufilter" bin/plain && ln -s "$build/gpufilter-mpi" bin/ranked
export PATH=$work/bin:$PATH LC_ALL=C
export OMPI_MCA_orte_execute_quiet=1 # that a job failed is said by the exit code

mpi() { # RANKS ARGUMENT...
    local ranks=$1
    shift
    timeout 120 mpirun -n "$ranks" ranked "$@"
}
summary() { # DONE FAILED SKIPPED FILE [RANKS]
    grep -qE "^$1 done, $2 failed, $3 skipped.* in [0-9.]+ s( by .*)?${5:-.*}, [0-9.]+ MP/s(, .* in)?(, .* out)?\$" "$4"
}
failures() { grep '^gpufilter: ' "$1" | sort; }                            # FILE: each failure
litter() { find "$1" -name '.*.tmp' | wc -l; }
same() { diff -r -x '.*' "$1" "$2"; }
untimed() { sed -E 's/"backend".*("parameters")/\1/'; } # of --json: all but who did it, and how long it took

# 60 pictures: grey and colour, u8, u16 and f32, in folders, some of them broken.
make_pictures() {
    local i n file
    for i in $(seq -w 60); do
        mkdir -p in/$((10#$i % 4))
        file=in/$((10#$i % 4))/$i
        n=$((20 + 10#$i % 9))
        case $((10#$i % 6)) in
        0 | 5) file=$file.pgm && printf 'P5\n%d 30\n255\n' $n ;;
        1) file=$file.ppm && printf 'P6\n%d 10\n255\n' $n ;;
        2) file=$file.pgm && printf 'P5\n%d 15\n65535\n' $n ;;
        3) file=$file.pfm && printf 'Pf\n%d 7\n-1\n' $n ;;
        4) file=$file.ppm && printf 'P6\n%d 5\n4000\n' $n ;;
        esac >head
        if [ $((10#$i % 6)) -eq 4 ]; then # no more than 4000
            head -c $((30 * n)) < <(yes "$(printf '\017\001\003\200\001\377\004\102\003')")
        elif [ $((10#$i % 6)) -eq 3 ]; then # numbers, all of them
            head -c $((28 * n)) < <(yes "$(printf 'A%s?B..@' $i)")
        else
            head -c $((30 * n)) < <(printf "picture %d of many. " {1..50}"$i")
        fi | cat head - >$file
        [ $((10#$i % 10)) -ne 7 ] || truncate -s -9 $file
    done
    mkdir same && cp in/0/*.pgm same # grey all of them
    printf 'nothing\n' >in/3/text.png
}

# ---- batches ---------------------------------------------------------------------------------------

as_one() { # RANKS
    mpi "$1" smooth -R in --out-dir "out$1" --radius 3 2>"told$1"
    [ $? -eq 1 ] && same want "out$1" && [ "$(litter "out$1")" = 0 ] &&
        diff <(failures want.log) <(failures "told$1") && [ "$(wc -l <"told$1")" = "$(wc -l <want.log)" ] &&
        summary "$made" "$failed_files" 0 "told$1" "$([ "$1" = 1 ] || echo " on $1 ranks")"
}

# What is measured comes in the order of the files, from any number of ranks.
measured() { # RANKS
    local how
    for how in "hist -R in --bins 5" "hist -R in --bins 4 --csv" "axis-sum -R in --axis y --csv" "axis-sum -R same" \
        "hist -R in --quiet"; do
        # shellcheck disable=SC2086 # words
        plain $how >text 2>errors
        code=$?
        # shellcheck disable=SC2086
        mpi "$1" $how >text2 2>errors2
        [ $? -eq $code ] && cmp text text2 && diff <(grep '^gpufilter: ' errors) <(grep '^gpufilter: ' errors2) || return 1
    done
    plain axis-sum -R in --json 2>/dev/null | untimed >text
    mpi "$1" axis-sum -R in --json 2>/dev/null >record
    cmp text <(untimed <record) && [ "$(wc -l <record)" = "$made" ]
}

# Every rank did something, which takes pictures that take longer than starting.
shared_out() {
    mpi 3 smooth slow/*.pgm -O shared --backend golden --threads 1 --radius 127 --json >record 2>told || return 1
    [ "$(wc -l <record)" = 120 ] && [ "$(grep -o '"rank": [0-9]*' record | sort -u | wc -l)" = 3 ] &&
        [ "$(grep -o '"files": \[[^]]*\]' record | sort -u | wc -l)" = 120 ] && summary 120 0 0 told ' on 3 ranks'
}
verbose() {
    mpi 2 smooth same/*.pgm -O verbose --verbose 2>told && [ "$(grep -c '^verbose/.* of rank [01] in ' told)" = "$(ls same | wc -l)" ]
}

# Only rank 0 has the standard input.
from_input() {
    (cd in && find 0 1 -type f | sort | sed 's|^|in/|') >names
    plain smooth --files-from names -O listed 2>errors
    mpi 3 smooth --files-from - -O listed3 <names 2>errors3
    same listed listed3 && diff <(failures errors) <(failures errors3) || return 1
    plain hist same/12.pgm - same/*.pgm --csv <same/24.pgm >text && mpi 3 hist same/12.pgm - same/*.pgm --csv <same/24.pgm >text3 && cmp text text3
}

resumed() {
    cp -a out3 some && find some -name '*[13].p?m' -delete && mpi 3 smooth -R in --out-dir some --radius 3 --resume 2>told
    [ $? -eq 1 ] && same want some || return 1
    local gone
    gone=$(find want -name '*[13].p?m' | wc -l)
    summary "$gone" "$failed_files" $((made - gone)) told ' on 3 ranks' || return 1
    plain smooth -R in --out-dir some --radius 3 --resume 2>told
    summary 0 "$failed_files" "$made" told || return 1
    # Other settings: all are made anew, since all are known.
    mpi 2 smooth -R in --out-dir some --radius 2 --resume 2>told
    summary "$made" "$failed_files" 0 told
}

# What somebody put there is kept, whichever rank would have written it.
kept() {
    mkdir kept && echo mine >kept/12.pgm
    mpi 3 smooth -R same -O kept 2>told
    [ $? -eq 1 ] && [ "$(cat kept/12.pgm)" = mine ] && [ "$(failures told | wc -l)" = 1 ] && summary $(($(ls same | wc -l) - 1)) 1 0 told
}

fails_fast() {
    mpi 2 smooth in/3/text.png slow/*.pgm -O fast --backend golden --threads 1 --radius 127 --fail-fast 2>told
    [ $? -eq 1 ] && [ "$(failures told | wc -l)" = 1 ] && grep -q '^[0-9]* done, 1 failed, 0 skipped, [0-9]* not begun in ' told &&
        [ "$(ls fast | wc -l)" -lt 100 ] && [ "$(litter fast)" = 0 ] || return 1
    mpi 3 hist in/3/text.png slow/*.pgm --backend golden --threads 1 --fail-fast --csv 2>told >text
    [ $? -eq 1 ] && grep -q ' 1 failed, .* not begun in ' told
}

no_backend() {
    mpi 3 smooth same/*.pgm -O none/at/all --backend cuda --device 77 2>told >text
    [ $? -eq 3 ] && [ ! -e none ] && [ ! -s text ] && [ "$(grep -c '^gpufilter: ' told)" = 1 ] &&
        grep -q "^gpufilter: rank [012] on $(hostname): cuda: " told
}

# One of them can start no thread: the job ends with its reason, and what had been begun is whole.
no_thread() { # RANK
    local i one=()
    for i in 0 1 2; do
        one+=(-n 1)
        [ $i != "$1" ] || one+=(-x "LD_PRELOAD=$work/no_thread.so")
        one+=(ranked smooth slow/*.pgm -O alone --backend golden --radius 127 :)
    done
    rm -rf alone
    timeout 120 mpirun --oversubscribe --bind-to none "${one[@]:0:${#one[@]}-1}" 2>told
    [ $? -eq 1 ] && [ "$(failures told)" = "gpufilter: rank $1 on $(hostname): smooth: cannot start a thread: Resource temporarily unavailable" ] || return 1
    [ ! -e alone ] || { [ "$(litter alone)" = 0 ] && [ "$(ls alone | wc -l)" -lt 100 ]; }
}
make_no_thread() { # a library without threads for the program's own code
    cat >no_thread.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    Dl_info info;
    if (dladdr((void *)run, &info) && strstr(info.dli_fname, "ranked"))
        return EAGAIN;
    return ((create *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, with);
}
END
    cc -shared -fPIC -o no_thread.so no_thread.c -ldl 2>/dev/null
}

refused() { # once, and by no more than one
    mpi 3 smooth same/*.pgm -O none --name x.pgm 2>told
    [ $? -eq 2 ] && [ "$(grep -c . told)" = 1 ] || return 1
    mpi 3 smooth absent.png -O none --fail-fast 2>told
    [ $? -eq 1 ] && [ "$(grep -c '^gpufilter: ' told)" = 1 ]
}

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

# ---- how far it has come ---------------------------------------------------------------------------

progress() { # in the background; what it says is looked at later
    mkfifo slowly.pgm
    { mpi 2 smooth same/*.pgm slowly.pgm -O slowly 2>slowly.log; echo $? >slowly.code; } &
    mkfifo quietly.pgm
    { mpi 2 smooth same/*.pgm quietly.pgm -O quietly --no-progress 2>quietly.log; echo $? >quietly.code; } &
    (
        exec 8>slowly.pgm 9>quietly.pgm
        sleep 10.5
        cat in/0/12.pgm >&8
        cat in/0/12.pgm >&9
    ) &
}
told_lines() {
    local count
    count=$(ls same | wc -l)
    for _ in $(seq 600); do # not by their numbers: other processes may have these by now
        [ -s slowly.code ] && [ -s quietly.code ] && break
        sleep 0.1
    done
    [ "$(cat slowly.code quietly.code | tr -d '\n')" = 00 ] && summary $((count + 1)) 0 0 slowly.log && summary $((count + 1)) 0 0 quietly.log &&
        [ "$(grep -cE "^gpufilter: $count of $((count + 1)) files, [0-9.]+ MP/s, [0-9]+:[0-9]+ left\$" slowly.log)" = 1 ] &&
        ! grep -q ' of ' quietly.log
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

test_batches() {
    make_pictures
    mkdir slow many
    for i in $(seq -w 120); do
        { printf 'P5\n300 200\n255\n' && head -c 60000 < <(yes "picture $i of many"); } >slow/$i.pgm
    done
    { printf 'P5\n1 1000000\n255\n' && head -c 1000000 < <(yes "a tall picture"); } >tall.pgm
    plain smooth -R in --out-dir want --radius 3 2>want.log
    made=$(find want -name '*.p?m' | wc -l)
    failed_files=$(failures want.log | wc -l)
    check "there is something to compare" [ "$made/$failed_files" = 44/17 ]
    progress
    for ranks in 1 2 3 4; do
        check "a batch, $ranks ranks" as_one $ranks
        check "what is measured, $ranks ranks" measured $ranks
    done
    check "every rank has its share" shared_out
    check "--verbose says who it was" verbose
    check "standard input" from_input
    check "--resume" resumed
    check "what is there is kept" kept
    check "--fail-fast" fails_fast
    check "no such backend" no_backend
    if grep -q 'fsanitize' "$build/config" || ! make_no_thread; then
        skip 2 "a rank without threads: not with a sanitizer, nor without cc"
    else
        check "rank 0 gets no thread" no_thread 0
        check "rank 2 gets no thread" no_thread 2
    fi
    check "refused" refused
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
    check "lines say how far it has come" told_lines
}

test_batches
check_sum
