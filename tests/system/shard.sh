#!/usr/bin/env bash
# Batches in numbered shards: tests/system/shard.sh BUILD. Which images a shard processes, shards that replace their inputs,
# and resumed shards. (transports.sh: shards in parallel and killed ones.)
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

after() {
    local done=(34 33 33) k
    for k in 1 2 3; do
        shard after $k/3 2>stderr && summary ${done[k - 1]} 0 0 stderr || return 1
    done
    same after
}
inside() { # outputs of some shards exist when others list the inputs
    rm -rf tree && cp -r in tree && shards 8 smooth -R tree -O tree/out -q && same tree/out
}
in_place() { # each replaces its own inputs, and inodes are reused
    for _ in $(seq 10); do
        rm -rf place && mkdir place && cp in/?/*.pgm place
        shards 8 smooth place/*.pgm -O place --force -q && same place flat || return 1
    done
}
check "three shards in sequence" after
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
    some && shards 4 smooth -R in -O part --resume 2>stderr && summary 34 0 66 stderr && same part && rest 0 100 &&
        rest 0 14 --shard 7/7 -j 2
}
after_all() { rm -rf part && cp -a want part && rest 0 34 --shard 1/3; }
check "--resume without --shard" no_shard
check "--resume with the last shard" last_shard
check "--resume with another number of shards" another_count
check "--resume of a run without --shard" after_all

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
check "hist in shards" measured

check_summary
