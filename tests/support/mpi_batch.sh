# shellcheck shell=bash
# To be sourced by tests of batches by several ranks: a directory with programs and images, and checks of a run. `build` must
# be set. Without MPI, the test ends here.
. tests/support/check.sh
. tests/support/mpi_run.sh
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
if why=$(mpi_missing "$build"); then
    skip 1 "several ranks: $why"
    check_summary
    exit
fi
ulimit -c 0
cd "$work" || exit
mkdir bin && ln -s "$build/gpufilter" bin/plain && ln -s "$build/gpufilter-mpi" bin/ranked
export PATH=$work/bin:$PATH LC_ALL=C
export OMPI_MCA_orte_execute_quiet=1 # the exit code reports a failed job

mpi() { # RANKS ARGUMENT...
    local ranks=$1
    shift
    timeout 120 mpirun -n "$ranks" ranked "$@"
}
summary() { # DONE FAILED SKIPPED FILE [RANKS]
    grep -qE "^$1 done, $2 failed, $3 skipped.* in [0-9.]+ s, [0-9.]+ MP/s((, each)? by .*)?${5:-.*}(, .* in)?(, .* out)?\$" "$4"
}
failures() { grep '^gpufilter: ' "$1" | sort; }                            # FILE: print all failures
litter() { find "$1" -name '.*.tmp' | wc -l; }
same() { diff -r -x '.*' "$1" "$2"; }
untimed() { sed -E 's/"backend".*("parameters")/\1/'; } # remove backend and times from the output of --json

# Write 60 images in directories: grey and colour, u8, u16 and f32. Some of them are broken.
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
        4) file=$file.ppm && printf 'P6\n%d 5\n3000\n' $n ;;
        esac >head
        if [ $((10#$i % 6)) -eq 4 ]; then # some samples are above 3000
            head -c $((30 * n)) < <(yes "$(printf '\017\001\003\200\001\377\004\102\003')")
        elif [ $((10#$i % 6)) -eq 3 ]; then # finite numbers
            head -c $((28 * n)) < <(yes "$(printf 'A%s?B..@' $i)")
        else
            head -c $((30 * n)) < <(printf "picture %d of many. " {1..50}"$i")
        fi | cat head - >$file
        [ $((10#$i % 10)) -ne 7 ] || truncate -s -9 $file
    done
    mkdir same && cp in/0/*.pgm same # only grey images
    printf 'nothing\n' >in/3/text.png
}

make_slow() { # images that take longer than the start of the program
    mkdir slow
    for i in $(seq -w 120); do
        { printf 'P5\n300 200\n255\n' && head -c 60000 < <(yes "picture $i of many"); } >slow/$i.pgm
    done
}
