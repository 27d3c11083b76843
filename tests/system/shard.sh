#!/usr/bin/env bash
# Many files in numbered parts: tests/system/shard.sh BUILD. Parts one after the other and at once, killed and resumed, with
# another number of parts.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit
ulimit -c 0

for i in $(seq -w 100); do
    folder=in/$((10#$i % 3))
    mkdir -p $folder
    n=$((8 + 10#$i % 5))
    { printf 'P5\n%d 9\n255\n' $n && head -c $((9 * n)) <(printf "picture %d of a hundred. " {1..20}"$i"); } >$folder/$i.pgm
done
gpufilter smooth -R in -O want -q
gpufilter smooth in/?/*.pgm -O flat -q

summary() { grep -q "^$1 done, $2 failed, $3 skipped in " "$4"; }
same() { diff -r -x '.*' want "$1"; }
shard() { # OUT K/N OPTIONS...
    local out=$1 part=$2
    shift 2
    gpufilter smooth -R in -O "$out" --shard "$part" "$@"
}

# ---- the same as one run ---------------------------------------------------------------------------

one_of_one() { shard one 1/1 2>sum && summary 100 0 0 sum && same one && [ "$(ls -A one)" = $'0\n1\n2' ]; }
after() {
    local done=(34 33 33) k
    for k in 1 2 3; do
        shard after $k/3 2>sum && summary ${done[k - 1]} 0 0 sum || return 1
    done
    same after
}
at_once() { # HOW MANY OPTIONS...
    local many=$1 k job
    shift
    rm -rf once
    for k in $(seq "$many"); do
        shard once $k/"$many" -q "$@" &
    done
    for job in $(jobs -p); do
        wait "$job" || return 1
    done
    same once
}
inside() { # the outputs of some are there when others look at the inputs
    local k job
    rm -rf tree && cp -r in tree
    for k in $(seq 8); do
        gpufilter smooth -R tree -O tree/out --shard $k/8 -q &
    done
    for job in $(jobs -p); do
        wait "$job" || return 1
    done
    same tree/out
}
in_place() { # each replaces its own, and inodes go from one to another
    local round k job
    for round in $(seq 10); do
        rm -rf place && mkdir place && cp in/?/*.pgm place
        for k in $(seq 8); do
            gpufilter smooth place/*.pgm -O place --force --shard $k/8 -q &
        done
        for job in $(jobs -p); do
            wait "$job" || return 1
        done
        diff -r -x '.*' flat place || return 1
    done
}
check "1/1 is all" one_of_one
check "three, one after the other" after
check "three at once" at_once 3
check "forty at once, of two threads" at_once 40 --threads 2
check "more than there are inputs" at_once 120 --threads 1
check "outputs below the inputs" inside
check "inputs replaced at once" in_place

numbered() { # {index} counts all inputs, whoever takes them
    gpufilter smooth -R in -O number --name '{index:3}{ext}' -q
    for k in 4 2 1 3; do
        find in -name '*.pgm' | sort | gpufilter smooth --files-from - -O numbers --name '{index:3}{ext}' --shard $k/4 -q || return 1
    done
    (cd number && md5sum */*.pgm | sed 's/[0-9]\///') >a
    (cd numbers && md5sum *.pgm) >b
    sort -k 2 a | cmp - b && [ "$(wc -l <b)" = 100 ]
}
check "{index} and a list on standard input" numbered

# ---- going on --------------------------------------------------------------------------------------

some() { rm -rf part && shard part 2/3 -q && shard part 3/3 -q; }
rest() { # DONE SKIPPED OPTIONS...: a run that goes on
    local done=$1 skipped=$2
    shift 2
    gpufilter smooth -R in -O part --resume "$@" 2>sum
    summary "$done" 0 "$skipped" sum || { cat sum; return 1; }
}
no_shard() { some && rest 34 66 && same part && rest 0 100 && rest 0 34 --shard 1/3; }
the_last() { some && rest 34 0 --shard 1/3 && same part && rest 0 100; }
another_count() {
    local k skipped=0
    some
    for k in 1 2 3 4; do
        gpufilter smooth -R in -O part --resume --shard $k/4 2>sum || return 1
        skipped=$((skipped + $(sed 's/.*failed, \([0-9]*\) skipped.*/\1/' sum)))
    done
    same part && [ $skipped -eq 66 ] && rest 0 100 && rest 0 15 --shard 7/7 -j 2 && return 1
    rest 0 14 --shard 7/7
}
after_all() { rm -rf part && cp -a want part && rest 0 34 --shard 1/3; }
check "--resume without --shard" no_shard
check "--resume with the last one" the_last
check "--resume with another number" another_count
check "--resume of a run without --shard" after_all

# Killed in the middle, as it waits for a picture, a pipe: what it and another one had done stays done, and whoever comes
# next does the rest. 049.pgm is the fiftieth, so number 17 of part 2 of 3.
killed() {
    local fd program code
    rm -rf some part && cp -r in some && rm some/1/049.pgm && mkfifo some/1/049.pgm
    files=(some/?/*.pgm)
    gpufilter smooth "${files[@]}" -O part --shard 3/3 -q || return 1
    gpufilter smooth "${files[@]}" -O part --shard 2/3 --threads 1 2>/dev/null &
    program=$!
    exec {fd}<>some/1/049.pgm # whether or not it is opened by the other
    head -c 30 in/1/049.pgm >&$fd
    for _ in $(seq 500); do
        [ "$(under_way $program)" = 1 ] && [ "$(ls part | wc -l)" -eq 49 ] && break
        sleep 0.01
    done
    kill -s KILL $program
    wait $program 2>/dev/null
    code=$?
    exec {fd}>&-
    rm some/1/049.pgm && cp in/1/049.pgm some/1
    [ $code -eq 137 ] && [ "$(ls part | wc -l)" -eq 49 ] && [ ! -e part/049.pgm ]
}
go_on() { gpufilter smooth "${files[@]}" -O part --resume "$@" 2>sum; }
whole() { diff -r -x '.*' flat part && go_on && summary 0 0 100 sum; }
go_on_alone() { killed && go_on && summary 51 0 49 sum && whole; }
go_on_as_before() { killed && go_on --shard 2/3 && summary 17 0 16 sum && go_on --shard 1/3 && summary 34 0 0 sum && whole; }
go_on_otherwise() {
    local k job
    killed || return 1
    for k in 1 2 3 4 5; do
        go_on --shard $k/5 -q &
    done
    for job in $(jobs -p); do
        wait "$job" || return 1
    done
    whole
}
check "killed, and one goes on" go_on_alone
check "killed, and goes on" go_on_as_before
check "killed, and five go on" go_on_otherwise

# An output that another shard makes while a run is under way counts as finished: the run waits for its first input, a pipe.
found() {
    local fd program
    rm -f pipe.pgm && mkfifo pipe.pgm && cp in/1/001.pgm again.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 --resume 2>sum &
    program=$!
    exec {fd}>pipe.pgm
    gpufilter smooth in/1/007.pgm again.pgm -O late --shard 2/2 -q
    cat in/1/004.pgm >&$fd
    exec {fd}>&-
    wait $program && summary 1 0 1 sum && cmp late/again.pgm want/1/001.pgm
}
check "an output that appears" found

# ---- measuring -------------------------------------------------------------------------------------

rows() { gpufilter hist -R in -n 4 --csv -q "$@"; }
measured() {
    local k
    rows >all
    for k in 1 2 3 4; do rows --shard $k/4 >rows$k || return 1; done
    [ "$(wc -l <all)" -eq 401 ] && head -n 1 all | cmp - <(head -n 1 rows3) || return 1
    # Four lines a picture: those of part 3 are the third of every four, in order.
    tail -n +2 all | awk 'int((NR - 1) / 4) % 4 == 2' | cmp - <(tail -n +2 rows3) &&
        tail -n +2 all | sort | cmp - <(tail -qn +2 rows? | sort)
}
sums() { # in JSON
    gpufilter axis-sum -R in --json -q | grep -o '"files.*"image\|"result.*' >all
    for k in 2 1; do gpufilter axis-sum -R in --json -q --shard $k/2 >half$k || return 1; done
    cat half? | grep -o '"files.*"image\|"result.*' | sort | cmp - <(sort all) && [ "$(wc -l <half2)" -eq 50 ]
}
check "hist of parts" measured
check "axis-sum of parts" sums

check_sum
