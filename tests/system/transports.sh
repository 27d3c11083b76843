#!/usr/bin/env bash
# Batches by each transport: tests/system/transports.sh BUILD. Threads of one process, shards and ranks make the same outputs
# and print the same results and errors; a batch that was killed is resumed by any of them.
# shellcheck disable=SC2086 # a transport is two words
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
images=100
. tests/support/batch_run.sh
on_ranks() { [ "$1" != ranks ] || [ "$2" = 1 ] || echo " on $2 ranks"; } # TRANSPORT: print this part of its summary

# ---- the expected outputs are those of single runs -------------------------------------------------

each_named() { [ "$(failures want.log | sed 's/gpufilter: \(in[^:]*\):.*/\1/')" = "$(ls in/*/??3.p?m in/3/text.png in/4/* | sort -u)" ]; }
alone() { # compare every fifth output with a run on that file alone
    local file
    for file in $(cd want && find . -name '*[16].p?m'); do
        gpufilter smooth "in/$file" "alone.${file##*.}" --force && cmp "alone.${file##*.}" "want/$file" || return 1
    done
}
check "the run of one process makes 77 outputs and 24 errors" [ "$made/$failed_files" = 77/24 ]
check "each failure is reported once" each_named
check "outputs equal those of single runs" alone

# ---- checks of a transport -------------------------------------------------------------------------

batch() {
    rm -rf out && "$@" smooth -R in --out-dir out 2>stderr
    [ $? -eq 1 ] && same out && [ -z "$(find out -name '.*')" ] &&
        diff <(failures want.log) <(grep -v '^[0-9]* done, \|^  brightness x' stderr | sort) &&
        summary "$made" "$failed_files" 0 stderr "$(on_ranks "$@")" || { cat stderr; return 1; }
}

# Ranks print the results in the order of the files. Each shard prints its own: their lines are compared in sorted order.
in_order() { if [ "$1" = shards ]; then sed '/^$/d; /^file,/d' | sort; else cat; fi; }
untimed() { sed -E 's/"backend".*("parameters")/\1/'; } # remove backend and times from the output of --json
measured() {
    local how code
    for how in "hist -R in --bins 5" "hist -R in --bins 4 --csv" "axis-sum -R in --axis y --csv" "axis-sum -R grey" \
        "hist -R in --quiet" "axis-sum -R in --json"; do
        gpufilter $how 2>errors | untimed | in_order "$1" >text
        code=${PIPESTATUS[0]}
        "$@" $how >output 2>errors2
        [ $? -eq "$code" ] && untimed <output | in_order "$1" | cmp text - &&
            diff <(grep '^gpufilter: ' errors | in_order "$1") <(grep '^gpufilter: ' errors2 | in_order "$1") || return 1
    done
    [ "$(wc -l <output)" = $((made + failed_files)) ] && [ "$(grep -c '"error": ' output)" = "$failed_files" ]
}

kept() { # an existing file is kept, regardless of the process that would write it
    rm -rf kept && mkdir -p kept/1 && echo mine >kept/1/008.pgm
    "$@" smooth -R in -O kept 2>stderr
    [ $? -eq 1 ] && [ "$(cat kept/1/008.pgm)" = mine ] && summary $((made - 1)) $((failed_files + 1)) 0 stderr &&
        [ "$(failures stderr | grep -c 'kept/1/008.pgm: ')" = 1 ]
}

resumed() {
    local some
    rm -rf some && cp -a want some && find some -name '*[14].p?m' -delete
    some=$(find some -name '*.p?m' | wc -l)
    "$@" smooth -R in -O some --resume 2>stderr
    [ $? -eq 1 ] && same some && summary $((made - some)) "$failed_files" "$some" stderr "$(on_ranks "$@")" || return 1
    gpufilter smooth -R in -O some --resume 2>stderr
    summary 0 "$failed_files" "$made" stderr || return 1
    # Outputs made with other settings count as finished; only --force makes them again.
    "$@" smooth -R in -O some --radius 2 --resume 2>stderr
    summary 0 "$failed_files" "$made" stderr && same some
}

# ---- a process ends in the middle of its image -----------------------------------------------------

# Send a signal while one process (all its threads) waits for images from pipes, and the others have done what they can.
killed() { # SIGNAL VICTIM TRANSPORT...; VICTIM: holder (of the pipe), other (rank, not 0), first (rank)
    local signal=$1 victim=$2 each=1 job holder process file fd fds=() pipes started named code end
    shift 2
    rm -rf input part && cp -a grey input
    inputs=(input/*)
    local half=$((${#inputs[@]} / 2))
    left=$((${#inputs[@]} - half)) # the images that are not done
    case $1 in shards) left=$(((left + $2 - 1) / $2)) ;; ranks) left=1 ;; esac
    pipes=("${inputs[@]:half:$([ "$1" = threads ] && echo "$2" || echo 1)}")
    for file in "${pipes[@]}"; do rm "$file" && mkfifo "$file"; done
    # By default, mpirun may leave the other ranks only a few milliseconds to end.
    OMPI_MCA_odls_base_sigkill_timeout=2 "$@" smooth "${inputs[@]}" -O part 2>stderr &
    job=$!
    for file in "${pipes[@]}"; do
        exec {fd}>"$file"
        head -c 30 "grey/${file#*/}" >&$fd
        fds+=("$fd")
    done
    under_way() {
        started=$(for process in $(children $job); do count_unfinished "$process"; done | awk '{ n += $1 } END { print n }')
        [ "$started" = ${#pipes[@]} ] && has_files part $((${#inputs[@]} - left))
    }
    within 30 under_way
    named=$(count_temporary part)
    holder=$(for process in $(children $job); do find /proc/$process/fd -lname "*/${pipes[0]}" -printf $process -quit; done)
    case $victim in
    holder) process=$holder ;;
    first) process=$(rank_of $job 0) ;;
    other) process=$(rank_of $job 1) && [ "$process" != "$holder" ] || process=$(rank_of $job 2) ;;
    esac
    end=$((SECONDS + 20))
    kill -s "$signal" "$process"
    wait $job 2>/dev/null
    code=$?
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    for file in "${pipes[@]}"; do cp --remove-destination "grey/${file#*/}" "$file"; done
    cat stderr
    echo "exit $code, $((end - SECONDS)) seconds before the end, temporary files: $named, then $(count_temporary part)"
    # Only the process that received SIGKILL leaves files with temporary names.
    [ "$signal-$victim" = KILL-holder ] || named=0
    [ $code -eq $((128 + $(kill -l "$signal"))) ] && [ $SECONDS -lt $end ] && [ "$started" = ${#pipes[@]} ] &&
        [ "$(ls part | wc -l)" -eq $((${#inputs[@]} - left)) ] && [ "$(count_temporary part)" -eq "$named" ]
}
resumes() { # make only the missing outputs; then all are finished
    rm -rf again && cp -a part again && ls -i again | sort >before
    "$@" smooth "${inputs[@]}" -O again --resume 2>stderr && summary "$left" 0 $((${#inputs[@]} - left)) stderr &&
        [ -z "$(comm -23 before <(ls -i again | sort))" ] && same again flat || return 1
    gpufilter smooth "${inputs[@]}" -O again --resume 2>stderr && summary 0 0 ${#inputs[@]} stderr
}
killed_and_resumed() { # SIGNAL VICTIM TRANSPORT OTHER...: resumed by each of the other transports
    local how
    check "$3: $1 to $2: exit code, finished outputs, no temporary files" killed "$1" "$2" $3
    for how in "${@:4}"; do
        check "$3: $1 to $2: resumed by $how" resumes $how
    done
}

# SIGKILL at arbitrary times, to another process each time: every output with its final name is complete, and the last
# resumed run completes the batch.
killed_often() { # TRIES KILLED TRANSPORT...: at least KILLED jobs are killed
    local i job before process killed_jobs=0 file
    rm -rf often && mkdir often
    for i in $(seq "$1"); do
        before=$(ls often | wc -l)
        "${@:3}" "${arguments[@]}" -O often --resume 2>stderr &
        job=$!
        if [ "$3" = ranks ]; then
            until [ "$(ls often | wc -l)" -ge $((before + 20)) ] || ! kill -0 $job; do sleep 0.01; done
            process=$(rank_of $job $((i % 3)))
        else
            sleep "0.0$((1 + i % 6))"
            process=$(children $job | sed -n "$((i % 3 + 1))p;\$p" | head -n 1)
        fi
        kill -KILL "$process"
        wait $job 2>/dev/null
        [ $? -ge 128 ] || break
        killed_jobs=$((killed_jobs + 1))
        for file in $(cd often && find . -name '*.p?m'); do cmp "often/$file" "all/$file" || return 1; done
    done
    echo "$killed_jobs killed, $(ls often | wc -l) outputs"
    [ $killed_jobs -ge "$2" ] || return 1
    "${@:3}" "${arguments[@]}" -O often --resume 2>stderr
    ! grep -q 'use --force to replace it' stderr && same often all
}

# ---- the transports --------------------------------------------------------------------------------

ranks=(ranks\ {1..4})
if why=$(mpi_missing "$build"); then
    skip 1 "several ranks: $why"
    ranks=()
fi
kinds=("threads 3" shards\ {3,5} "${ranks[@]:2:1}")
for by in threads\ {1,3,16} shards\ {1,3,40,120} "${ranks[@]}"; do
    check "$by: same outputs, errors and counts as one process" batch $by
done
for by in "threads 3" shards\ {1,4} "${ranks[@]:$(by_tier 2 2 0):$(by_tier 1 1 4)}"; do
    check "$by: same results of measuring filters" measured $by
done
for by in "${kinds[@]}"; do
    check "$by: an existing file is kept" kept $by
    check "$by: --resume" resumed $by
done

gpufilter smooth grey/* -O flat -q
for count in 1 4; do
    for signal in TERM INT HUP; do killed_and_resumed $signal holder "threads $count" "threads 3"; done
    killed_and_resumed KILL holder "threads $count" "${kinds[@]}"
done
killed_and_resumed KILL holder "shards 3" "${kinds[@]}"
cp -a want all
arguments=(smooth -R in)
check "threads 3: killed repeatedly" killed_often 60 0 threads 3
check "shards 3: killed repeatedly" killed_often 60 0 shards 3

if [ ${#ranks[@]} -gt 0 ] && "$(by_tier false false true)"; then
    for victim in holder other first; do killed_and_resumed KILL $victim "ranks 3" "${kinds[@]}"; done
    make_slow && mkdir many && rm -r all
    for i in $(seq 300); do ln "slow/$(printf %03d $((1 + i % 120))).pgm" many/$i.pgm; done
    arguments=(smooth many/*.pgm --radius 127 --axis xy)
    gpufilter "${arguments[@]}" -O all -q
    arguments+=(--backend golden --threads 1) # slow
    check "ranks 3: killed repeatedly" killed_often 3 2 ranks 3
fi
check_summary
