#!/usr/bin/env bash
# Signals at random times: tests/long/kill.sh BUILD [ROUNDS]. Multithreaded runs with one image, several outputs or a
# batch are ended ROUNDS times by each of KILL, TERM, INT and HUP. Every output must then equal the old or the new one
# exactly; except after KILL, the outputs of one run are all old or all new; --resume must complete a batch.
# Prints the counts at the end. GF_TEST_SEED selects other times.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
rounds=${2:-$(by_tier 5 6 150)}
export PATH=$build:$PATH LC_ALL=C
cd "$work" || exit
ulimit -c 0
RANDOM=${GF_TEST_SEED:-1}
sent=0 hit=0 incomplete=0 missing=0 mixed=0 leftover=0 windows=0 wrong=0

draw --photo 900 600 3 in.ppm && gpufilter smooth in.ppm in.png -q || exit
gpufilter smooth --radius 1 in.png old.png -q && gpufilter smooth --radius 9 in.png new.png -q
outputs_in() { # DIRECTORY: print the options that write there
    echo "--out $1/v.csv --mask $1/m.png $(! has_cairo || echo "--plot $1/p.svg")"
}
# shellcheck disable=SC2046 # words
measure() { gpufilter hist in.ppm -q --bins "$1" -x 1 $(outputs_in "$2") --force; }
mkdir old new && measure 4 old && measure 3 new || exit
mkdir in && for i in $(seq -w 40); do draw --photo 200 150 "1$i" in/$i.ppm || exit; done
gpufilter smooth in/*.ppm -O want --threads 4 -q

microseconds() { local now=$EPOCHREALTIME; echo "${now/[.,]/}"; }
duration_of() { # COMMAND...: print its duration in microseconds
    local begun
    begun=$(microseconds)
    "$@" >/dev/null 2>&1
    echo $(($(microseconds) - begun))
}
kill_at() { # SIGNAL MICROSECONDS COMMAND...: set code to the exit code
    local signal=$1 delay=$2 until name
    shift 2
    # A shell's background jobs ignore INT; the program leaves ignored signals ignored.
    env --default-signal "$@" >out 2>err &
    local program=$!
    # An earlier signal might hit the shell child, which has the shell's traps, before it executes the program.
    until name= && { read -r name </proc/$program/comm; } 2>/dev/null; [ "$name" != bash ] && [ "$name" != env ]; do :; done
    until=$(($(microseconds) + delay))
    while [ "$(microseconds)" -lt $until ]; do :; done
    kill -s "$signal" $program 2>/dev/null && sent=$((sent + 1))
    wait $program 2>/dev/null
    code=$?
    case $code in
    $((128 + $(kill -l "$signal")))) hit=$((hit + 1)) ;;
    0) ;; # it ended before the signal
    *)
        wrong=$((wrong + 1))
        echo "exit $code after $signal: $*"
        cat err
        ;;
    esac
}
# Count temporary files: none may exist, except after KILL between the two calls with which a file replaces another.
# That file is complete.
left_in() { # DIRECTORY SIGNAL NEW...
    local file directory=$1 signal=$2 whole candidate
    shift 2
    while IFS= read -r -d '' file; do
        whole=no
        for candidate; do cmp -s "$file" "$candidate" && whole=yes; done
        if [ "$signal" = KILL ] && [ $whole = yes ]; then
            windows=$((windows + 1))
        else
            leftover=$((leftover + 1))
            echo "left after $signal: $file"
        fi
        rm "$file"
    done < <(find "$directory" -name '.*.tmp' -print0)
}

one_image() { # SIGNAL
    local duration i enough file
    mkdir -p one && cp old.png one/o.png
    duration=$(duration_of gpufilter smooth --radius 9 in.png one/o.png --force --threads 4)
    for ((i = 0, enough = hit + rounds; hit < enough && i < 4 * rounds; i++)); do
        cp old.png one/o.png && rm -f one/n.png
        if [ $((i % 2)) -eq 0 ]; then
            kill_at "$1" $((RANDOM * duration / 36000)) gpufilter smooth --radius 9 in.png one/o.png --force --threads 4
        else
            kill_at "$1" $((RANDOM * duration / 36000)) gpufilter smooth --radius 9 in.png one/n.png --threads 4
        fi
        left_in one "$1" new.png old.png
        [ -e one/o.png ] || missing=$((missing + 1))
        for file in one/*.png; do cmp -s $file new.png || { [ $file = one/o.png ] && cmp -s $file old.png; } || incomplete=$((incomplete + 1)); done
        { [ $code -ne 0 ] || cmp -s one/$([ $((i % 2)) -eq 0 ] && echo o || echo n).png new.png; } || missing=$((missing + 1))
    done
}
several() { # SIGNAL
    local duration i enough file olds news outputs
    outputs=$(outputs_in all)
    rm -rf all && cp -r old all
    duration=$(duration_of measure 3 all)
    for ((i = 0, enough = hit + rounds; hit < enough && i < 4 * rounds; i++)); do
        rm -rf all && cp -r old all
        kill_at "$1" $((RANDOM * duration / 36000)) gpufilter hist in.ppm -q --bins 3 -x 1 $outputs --force --threads 4
        left_in all "$1" new/* old/*
        olds=0 news=0
        for file in new/*; do
            file=${file#new/}
            if [ ! -e all/$file ]; then
                missing=$((missing + 1))
            elif cmp -s all/$file new/$file; then
                news=$((news + 1))
            elif cmp -s all/$file old/$file; then
                olds=$((olds + 1))
            else
                incomplete=$((incomplete + 1))
            fi
        done
        [ "$1" = KILL ] || [ $((olds * news)) -eq 0 ] || mixed=$((mixed + 1))
    done
}
batch() { # SIGNAL: resume until the batch is complete, then start again
    local duration i enough file
    duration=$(duration_of gpufilter smooth in/*.ppm -O timed --threads 4 -q)
    rm -rf timed many
    for ((i = 0, enough = hit + rounds; hit < enough && i < 4 * rounds; i++)); do
        kill_at "$1" $((RANDOM * duration / 60000)) gpufilter smooth in/*.ppm -O many --threads 4 -q --resume
        [ ! -d many ] || left_in many "$1" want/*
        for file in many/*.ppm; do [ ! -e "$file" ] || cmp -s "$file" "want/${file#many/}" || incomplete=$((incomplete + 1)); done
        if [ $code -eq 0 ] || [ $hit -eq $enough ]; then
            gpufilter smooth in/*.ppm -O many --threads 4 -q --resume || wrong=$((wrong + 1))
            diff -r -x '.*' want many >/dev/null || missing=$((missing + 1))
            rm -rf many
        fi
    done
}
for signal in KILL TERM INT HUP; do
    one_image $signal
    several $signal
    batch $signal
done
echo "signals sent $sent, runs ended by them $hit; incomplete $incomplete, missing $missing, mixed $mixed, leftovers $leftover, wrong exits $wrong;" \
    "complete files under a temporary name after KILL: $windows"
none_wrong() { [ $((incomplete + missing + mixed + leftover + wrong)) -eq 0 ]; }
are_enough() { [ $hit -ge $((rounds * 9)) ]; }
check "nothing incomplete, missing, mixed or left" none_wrong
check "enough runs were ended by a signal" are_enough
check_summary
