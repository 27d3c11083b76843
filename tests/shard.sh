#!/usr/bin/env bash
# Many files in numbered parts: tests/shard.sh BUILD. Parts one after the other and at once, killed and resumed, with
# another number of parts, and the records that they leave.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
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

one_of_one() { shard one 1/1 2>sum && summary 100 0 0 sum && same one && [ "$(ls -A one)" = $'.gpufilter-done.1-of-1\n0\n1\n2' ]; }
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
    # A part without inputs leaves no record.
    same once && [ "$(find once -name '.gpufilter-done*' | wc -l)" = $((many < 100 ? many : 100)) ]
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
after_all() { rm -rf part && cp -a want part && rest 0 34 --shard 1/3 && [ ! -e part/.gpufilter-done.1-of-3 ]; }
other_settings() { some && rest 33 0 --shard 2/3 --radius 3 && rest 33 0 --shard 2/3 && rest 34 66 && same part; }
torn() { # a line that is none in one of the records: its output is nobody's
    some && truncate -s -5 part/.gpufilter-done.2-of-3 && ! rest 34 65 && summary 34 1 65 sum &&
        ! rest 0 32 --shard 2/3 && summary 0 1 32 sum && rest 1 32 --shard 2/3 --force && rest 0 100 && same part
}
foreign() { some && echo mine >part/0/006.pgm && ! rest 34 65 && summary 34 1 65 sum && [ "$(cat part/0/006.pgm)" = mine ]; }
moved() { # records may be put together
    some && { cat part/.gpufilter-done.2-of-3 && tail -n +2 part/.gpufilter-done.3-of-3; } >part/.gpufilter-done &&
        rm part/.gpufilter-done.* && rest 34 66 && same part
}
check "--resume without --shard" no_shard
check "--resume with the last one" the_last
check "--resume with another number" another_count
check "--resume of a run without --shard" after_all
check "--resume with other settings" other_settings
check "a torn line in one of the records" torn
check "what somebody else put there" foreign
check "records put together" moved

# Two records that say otherwise of one output: nobody knows which was last, so it is ours, and made anew.
sign() { # LINE: with its check sum
    local hash=0xcbf29ce484222325 i byte
    for ((i = 0; i < ${#1}; i++)); do
        printf -v byte '%d' "'${1:i:1}"
        hash=$(((hash ^ byte) * 0x100000001b3))
    done
    printf '%08x %s\n' $(((hash ^ (hash >> 32)) & 0xffffffff)) "$1"
}
disputed() {
    local line
    some
    line=$(grep ' 0/006.pgm$' part/.gpufilter-done.2-of-3)
    [ "$(sign "${line#* }")" = "$line" ] || return 1
    { echo gpufilter-done 2 && sign "${line#* }"; } >part/.gpufilter-done.9-of-9
    rest 34 66 && rest 0 100 || return 1
    { echo gpufilter-done 2 && sign "$(echo "${line#* }" | sed 's/^................/0123456789abcdef/')"; } >part/.gpufilter-done.9-of-9
    rest 1 99 && rest 0 100 && same part
}
check "records that differ" disputed

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

# What is found in the records while a run is under way: it waits for its first input, a pipe, as others do its second.
meanwhile() { # WHO OPTIONS...
    local fd program
    rm -rf late pipe.pgm && mkfifo pipe.pgm && cp in/1/001.pgm again.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 --resume 2>sum &
    program=$!
    exec {fd}>pipe.pgm
    "$@"
    cat in/1/004.pgm >&$fd
    exec {fd}>&-
    wait $program
}
other_shard() { gpufilter smooth in/1/007.pgm again.pgm -O late --shard 2/2 -q; }
two_shards() { gpufilter smooth in/1/007.pgm again.pgm -O late --shard 1/2 -q && other_shard; }
nobody_known() { gpufilter smooth again.pgm -O late -q --shard 1/1 && touch late/again.pgm; }
found() { meanwhile "$1" && summary 1 0 1 sum && cmp late/again.pgm want/1/001.pgm; }
lost() { ! meanwhile nobody_known && summary 1 1 0 sum && grep -q 'late/again.pgm: exists already' sum; }
check "a record that appears" found other_shard
check "two records that appear" found two_shards
check "a record that does not fit" lost

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

# Few files may be open, and there are many records.
few_files() {
    local k
    rm -rf many && cp -a once many
    for k in $(seq 200); do cp once/.gpufilter-done.1-of-120 many/.gpufilter-done.$k-of-200; done
    (ulimit -n 32 && gpufilter smooth -R in -O many --resume 2>sum) && summary 0 0 100 sum
}
check "many records" few_files

# A file of the record that may not be read is told, and so is a folder that may not be listed.
if [ "$(id -u)" -ne 0 ]; then
    other() { "$@"; }
elif setpriv --reuid=65534 --clear-groups gpufilter --version >/dev/null 2>&1; then
    other() { setpriv --reuid=65534 --clear-groups "$@"; }
else
    other() { return 127; }
fi
chmod 755 .
if other true; then
    secret() {
        some && chmod 000 part/.gpufilter-done.3-of-3 && ! other gpufilter smooth -R in -O part --resume 2>sum &&
            grep -q '^gpufilter: part/.gpufilter-done.3-of-3: cannot read: Permission denied$' sum
    }
    unlisted() {
        mkdir -m 333 unlisted && ! other gpufilter smooth -R in -O unlisted --resume 2>sum &&
            grep -q '^gpufilter: unlisted: cannot read the folder, to see what is finished: ' sum
    }
    check "a record that may not be read" secret
    check "a folder that may not be listed" unlisted
    chmod 755 unlisted
else
    skip 2 "records without permission: there is no other user to be"
fi

check_sum
