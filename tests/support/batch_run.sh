# shellcheck shell=bash
# To be sourced by tests of batches: a directory with many images, their expected outputs, the transports that run a batch,
# and checks of a run. `build` must be set; `images`, `directories` and `broken` are optional.
. tests/support/check.sh
. tests/support/mpi_run.sh
export PATH=$build:$PATH LC_ALL=C
export OMPI_MCA_orte_execute_quiet=1 # the exit code reports a failed job
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit
ulimit -c 0

# ---- transports: NAME COUNT ARGUMENT... runs gpufilter, with `each` threads in each process --------

threads() { env --default-signal gpufilter "${@:2}" --threads "$1"; } # a background job of a shell ignores INT
ranks() { timeout 120 mpirun -n "$1" gpufilter-mpi "${@:2}" ${each:+--threads $each}; }
shards() { # in parallel; their output follows in the order of the shards
    local k code=0 jobs=()
    for k in $(seq "$1"); do
        gpufilter "${@:2}" --shard "$k/$1" --threads "${each:-2}" >shard$k.out 2>shard$k.err &
        jobs+=($!)
    done
    for k in "${jobs[@]}"; do wait "$k" || code=$?; done
    for k in $(seq "$1"); do cat shard$k.out && cat shard$k.err >&2; done
    return $code
}
need_ranks() { # without MPI, the test ends here
    local why
    ! why=$(mpi_missing "$build") || { skip 1 "several ranks: $why"; check_summary; exit; }
}

children() { # JOB: print its descendants
    local process
    for process in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
        echo "$process"
        children "$process"
    done
}
rank_of() { # JOB RANK: print its process
    local process
    for process in $(children "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -x "OMPI_COMM_WORLD_RANK=$2" >/dev/null && echo "$process"
    done
}

# ---- checks ----------------------------------------------------------------------------------------

summary() { # DONE FAILED SKIPPED FILE [RANKS]: the sums over all shards
    local rest='in [0-9.]+ s, [0-9.]+ MP/s((, each)? by .*)?'"${5:-.*}"'(, .* in)?(, .* out)?'
    [ "$(sed -nE "s|^([0-9]+) done, ([0-9]+) failed, ([0-9]+) skipped $rest\$|\1 \2 \3|p" "$4" |
        awk '{ a += $1; b += $2; c += $3 } END { print a, b, c }')" = "$1 $2 $3" ]
}
same() { diff -r -x '.*' "${2:-want}" "$1"; }   # DIRECTORY [EXPECTED]
failures() { grep '^gpufilter: ' "$1" | sort; } # FILE: print all failures
count_temporary() { find "$1" -name '.*.tmp' | wc -l; }

# ---- pictures --------------------------------------------------------------------------------------

picture() { { printf '%s\n' "$2" && head -c "$3" < <(yes "$4"); } >"$1"; } # FILE HEADER BYTES TEXT
make_slow() { # 120 images that take longer than the start of the program
    local i
    mkdir slow
    for i in $(seq -w 120); do picture slow/$i.pgm $'P5\n300 200\n255' 60000 "picture $i of many"; done
}

# Images of several sizes in directories, each with one type; every tenth one is broken (broken=0: none). grey: intact ones
# of type u8.
mkdir grey
for i in $(seq -w "${images:-300}"); do
    directory=in/$((10#$i % ${directories:-7}))
    text="picture $i of many"
    case $directory in
    in/0) kind="P5 65535 pgm" bytes=2 ;;
    in/3) kind="Pf -1 pfm" bytes=4 text="A$i?B..@" ;;                                # finite numbers
    in/4) kind="P6 3000 ppm" bytes=6 text=$'\017\001\003\200\001\377\004\102\003' ;; # samples above 3000: an error
    in/5) kind="P6 255 ppm" bytes=3 ;;
    *) kind="P5 255 pgm" bytes=1 ;;
    esac
    read -r magic max extension <<<"$kind"
    mkdir -p $directory
    n=$((8 + 10#$i % 5)) rows=$((12 - bytes))
    picture $directory/$i.$extension "$magic"$'\n'"$n $rows"$'\n'"$max" $((n * rows * bytes)) "$text"
    [ $((10#$i % 10)) -ne 3 ] || [ "${broken:-1}" -eq 0 ] || truncate -s -9 $directory/$i.$extension
done
[ "${broken:-1}" -eq 0 ] || echo nothing >in/3/text.png
cp in/[126]/*[!3].pgm grey
gpufilter smooth -R in --out-dir want >/dev/null 2>want.log
made=$(find want -name '*.p?m' | wc -l)
failed_files=$(failures want.log | wc -l)
