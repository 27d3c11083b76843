#!/usr/bin/env bash
# Batches in numbered shards: tests/system/shard.sh BUILD. Shards in sequence and in parallel, killed and resumed,
# also with another number of shards.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
images=100 directories=3 broken=0
. tests/support/batch_run.sh
gpufilter smooth in/?/*.pgm -O flat -q

shard() { # OUT K/N OPTIONS...
    local out=$1 part=$2
    shift 2
    gpufilter smooth -R in -O "$out" --shard "$part" "$@"
}

# ---- same results as one run -----------------------------------------------------------------------

one_of_one() { shard one 1/1 2>stderr && summary 100 0 0 stderr && same one && [ "$(ls -A one)" = $'0\n1\n2' ]; }
after() {
    local done=(34 33 33) k
    for k in 1 2 3; do
        shard after $k/3 2>stderr && summary ${done[k - 1]} 0 0 stderr || return 1
    done
    same after
}
at_once() { # COUNT OPTIONS...
    local many=$1 k
    shift
    rm -rf once
    for k in $(seq "$many"); do
        shard once $k/"$many" -q "$@" &
    done
    wait_all || return 1
    same once
}
inside() { # outputs of some shards exist when others list the inputs
    local k
    rm -rf tree && cp -r in tree
    for k in $(seq 8); do
        gpufilter smooth -R tree -O tree/out --shard $k/8 -q &
    done
    wait_all || return 1
    same tree/out
}
in_place() { # each replaces its own inputs, and inodes are reused
    local round k
    for round in $(seq 10); do
        rm -rf place && mkdir place && cp in/?/*.pgm place
        for k in $(seq 8); do
            gpufilter smooth place/*.pgm -O place --force --shard $k/8 -q &
        done
        wait_all || return 1
        diff -r -x '.*' flat place || return 1
    done
}
check "1/1 processes all inputs" one_of_one
check "three shards in sequence" after
check "three shards in parallel" at_once 3
check "forty shards in parallel with two threads each" at_once 40 --threads 2
check "more shards than inputs" at_once 120 --threads 1
check "an output directory in the input directory" inside
check "inputs replaced in parallel" in_place

numbered() { # {index} counts all inputs, not those of the shard
    gpufilter smooth -R in -O number --name '{index:3}{ext}' -q
    for k in 4 2 1 3; do
        find in -name '*.pgm' | sort | gpufilter smooth --files-from - -O numbers --name '{index:3}{ext}' --shard $k/4 -q || return 1
    done
    (cd number && md5sum */*.pgm | sed 's/[0-9]\///') >a
    (cd numbers && md5sum *.pgm) >b
    sort -k 2 a | cmp - b && [ "$(wc -l <b)" = 100 ]
}
check "{index} and a list on standard input" numbered

# ---- resuming --------------------------------------------------------------------------------------

some() { rm -rf part && shard part 2/3 -q && shard part 3/3 -q; }
rest() { # DONE SKIPPED OPTIONS...: resume with these counts in the summary
    local done=$1 skipped=$2
    shift 2
    gpufilter smooth -R in -O part --resume "$@" 2>stderr
    summary "$done" 0 "$skipped" stderr || { cat stderr; return 1; }
}
no_shard() { some && rest 34 66 && same part && rest 0 100 && rest 0 34 --shard 1/3; }
last_shard() { some && rest 34 0 --shard 1/3 && same part && rest 0 100; }
another_count() {
    local k skipped=0
    some
    for k in 1 2 3 4; do
        gpufilter smooth -R in -O part --resume --shard $k/4 2>stderr || return 1
        skipped=$((skipped + $(sed 's/.*failed, \([0-9]*\) skipped.*/\1/' stderr)))
    done
    same part && [ $skipped -eq 66 ] && rest 0 100 && rest 0 15 --shard 7/7 -j 2 && return 1
    rest 0 14 --shard 7/7
}
after_all() { rm -rf part && cp -a want part && rest 0 34 --shard 1/3; }
check "--resume without --shard" no_shard
check "--resume with the last shard" last_shard
check "--resume with another number of shards" another_count
check "--resume of a run without --shard" after_all

# Kill shard 2/3 while it waits for an image from a pipe. The outputs of shards 2 and 3 so far stay, and resumed runs
# make the rest. 049.pgm is the fiftieth input, which is number 17 of shard 2/3.
killed() {
    local fd program code
    rm -rf some part && cp -r in some && rm some/1/049.pgm && mkfifo some/1/049.pgm
    files=(some/?/*.pgm)
    gpufilter smooth "${files[@]}" -O part --shard 3/3 -q || return 1
    gpufilter smooth "${files[@]}" -O part --shard 2/3 --threads 1 2>/dev/null &
    program=$!
    exec {fd}<>some/1/049.pgm # read and write, so that opening does not wait for the reader
    head -c 30 in/1/049.pgm >&$fd
    under_way() { [ "$(count_unfinished $program)" = 1 ] && has_files part 49; }
    within 20 under_way
    kill -s KILL $program
    wait $program 2>/dev/null
    code=$?
    exec {fd}>&-
    rm some/1/049.pgm && cp in/1/049.pgm some/1
    [ $code -eq 137 ] && [ "$(ls part | wc -l)" -eq 49 ] && [ ! -e part/049.pgm ]
}
resume() { gpufilter smooth "${files[@]}" -O part --resume "$@" 2>stderr; }
whole() { diff -r -x '.*' flat part && resume && summary 0 0 100 stderr; }
resume_all() { killed && resume && summary 51 0 49 stderr && whole; }
resume_same_shards() { killed && resume --shard 2/3 && summary 17 0 16 stderr && resume --shard 1/3 && summary 34 0 0 stderr && whole; }
resume_other_shards() {
    local k
    killed || return 1
    for k in 1 2 3 4 5; do
        resume --shard $k/5 -q &
    done
    wait_all || return 1
    whole
}
check "killed, and resumed by one run" resume_all
check "killed, and resumed by the same shards" resume_same_shards
check "killed, and resumed by five shards" resume_other_shards

# An output that another shard makes during a run counts as finished. The run waits for its first input, a pipe.
found() {
    local fd program
    rm -f pipe.pgm && mkfifo pipe.pgm && cp in/1/001.pgm again.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 --resume 2>stderr &
    program=$!
    exec {fd}>pipe.pgm
    gpufilter smooth in/1/007.pgm again.pgm -O late --shard 2/2 -q
    cat in/1/004.pgm >&$fd
    exec {fd}>&-
    wait $program && summary 1 0 1 stderr && cmp late/again.pgm want/1/001.pgm
}
check "an output that appears during the run" found

# ---- measuring filters -----------------------------------------------------------------------------

rows() { gpufilter hist -R in -n 4 --csv -q "$@"; }
measured() {
    local k
    rows >all
    for k in 1 2 3 4; do rows --shard $k/4 >rows$k || return 1; done
    [ "$(wc -l <all)" -eq 401 ] && head -n 1 all | cmp - <(head -n 1 rows3) || return 1
    # Each image has four lines. Shard 3/4 prints the third of every four images, in order.
    tail -n +2 all | awk 'int((NR - 1) / 4) % 4 == 2' | cmp - <(tail -n +2 rows3) &&
        tail -n +2 all | sort | cmp - <(tail -qn +2 rows? | sort)
}
sums() { # in JSON
    gpufilter axis-sum -R in --json -q | grep -o '"files.*"image\|"result.*' >all
    for k in 2 1; do gpufilter axis-sum -R in --json -q --shard $k/2 >half$k || return 1; done
    cat half? | grep -o '"files.*"image\|"result.*' | sort | cmp - <(sort all) && [ "$(wc -l <half2)" -eq 50 ]
}
check "hist in shards" measured
check "axis-sum in shards" sums

check_summary
