#!/usr/bin/env bash
# A missing device, or one without free memory: tests/long/gpu_faults.sh BUILD. Successful runs must return golden's
# bytes; failed runs must print the reason in one line and leave no files. Without a device, only the messages about
# it are tested.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
hold=$build/tests/hold_memory
holder=
free_memory() { # free the memory that hold_memory holds
    [ -z "$holder" ] && return
    exec 9>&-
    wait "$holder" 2>/dev/null
    holder=
}
trap 'free_memory; rm -rf "$work"' EXIT
cd "$work" || exit

"$build/draw" --photo 1200 900 1 photo.png
"$build/draw" --photo 640 480 2 small.ppm
mkdir many
for i in $(seq -w 40); do cp small.ppm "many/$i.ppm"; done

cases=("smooth -k" "smooth --axis xy --radius 9" "normalize")
golden() {
    local i=0
    for job in "${cases[@]}"; do
        # shellcheck disable=SC2086 # options
        gpufilter $job -q -b golden photo.png golden$i.png || return 1
        i=$((i + 1))
    done
    gpufilter hist -b golden --json photo.png --bins 9 --extract 4 --out golden.csv >/dev/null &&
        gpufilter axis-sum -b golden --axis y --csv photo.png >golden-sums.csv &&
        gpufilter smooth -q -b golden many/*.ppm --out-dir golden-many
}
same() { # BACKEND...: run all jobs and compare with golden's bytes
    local i=0
    for job in "${cases[@]}"; do
        # shellcheck disable=SC2086 # options
        gpufilter $job -q -f "$@" photo.png out.png && cmp golden$i.png out.png || return 1
        i=$((i + 1))
    done
    gpufilter hist -f "$@" --json photo.png --bins 9 --extract 4 --out out.csv >/dev/null && cmp golden.csv out.csv &&
        gpufilter axis-sum "$@" --axis y --csv photo.png >sums.csv && cmp golden-sums.csv sums.csv && same_batch "$@"
}
same_batch() {
    rm -rf out
    gpufilter smooth -q -f "$@" many/*.ppm --out-dir out && all_there
}
all_there() {
    for file in golden-many/*; do cmp "$file" "out/${file#*/}" || return 1; done
    [ "$(find out -type f | wc -l)" -eq 40 ]
}
nothing() { # no output and no temporary file
    [ ! -e none.png ] && [ -z "$(find . -name '.*gpufilter-*.tmp')" ]
}
one_line() { # CODES COMMAND...: expect one of these exit codes ("1 3"), and one line on standard error
    local codes=$1
    shift
    "$@" 2>errors >/dev/null
    local code=$?
    cat errors
    [[ " $codes " == *" $code "* ]] && [ "$(wc -l <errors)" -eq 1 ] && grep -q '^gpufilter: ' errors && nothing
}
silent() { # COMMAND...
    "$@" 2>errors && [ ! -s errors ]
}
prints() { # PATTERN COMMAND...
    local pattern=$1
    shift
    "$@" 2>errors && grep -q "$pattern" errors
}

check "golden" golden

# ---- no device -----------------------------------------------------------------------------------

hidden() { CUDA_VISIBLE_DEVICES='' "$@"; }
check "no device: auto" hidden same -b auto
check "no device: auto is silent" hidden silent gpufilter smooth -k -f photo.png out.png
check "no device: auto with --verify" hidden silent gpufilter smooth -k -f --verify photo.png out.png
check "no device: cuda" hidden one_line 3 gpufilter smooth -b cuda photo.png none.png
check "no device: --device" hidden one_line 3 gpufilter smooth --device 0 photo.png none.png
check "no device: a batch on cuda" hidden one_line 3 gpufilter smooth -b cuda many/*.ppm --out-dir none
check "no device: its directory" test ! -e none

if ! gpufilter smooth -q -f -b cuda photo.png out.png 2>/dev/null; then
    if [ -n "${GF_REQUIRE_CUDA:-}" ]; then
        check "GF_REQUIRE_CUDA is set" gpufilter smooth -q -f -b cuda photo.png out.png
    else
        skip 13 "no GPU"
    fi
    check_summary
    exit
fi

# ---- with a device -------------------------------------------------------------------------------

check "cuda" same -b cuda
check "cuda, verified" same -b cuda --verify
check "cuda: --verbose reports the verification" prints verified gpufilter smooth -f -v -b cuda --verify photo.png out.png
check "no such device" one_line 3 gpufilter smooth --device 99 photo.png none.png

# ---- another process holds the memory ------------------------------------------------------------

occupy() { # MEGABYTES to leave free
    rm -f fifo && mkfifo fifo
    "$hold" 0 "$1" <fifo >held &
    holder=$!
    exec 9>fifo
    for _ in $(seq 300); do
        grep -q held held && return
        kill -0 $holder 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
total=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1)
check "another process holds 95 % of the memory" occupy $((${total:-16000} / 20))
check "95 %: cuda" same -b cuda
check "95 %: auto" same -b auto
free_memory
# A context takes a few hundred megabytes: with less, the device does not start; with slightly more, only low strips
# fit.
either() { # golden's bytes, or one line and no files
    same -b cuda 2>errors >/dev/null && return
    cat errors
    one_line "1 3" gpufilter smooth -b cuda photo.png none.png
}
for free in 0 300 500 520 540 600; do
    check "$free MB are free" occupy $free
    check "$free MB: cuda" either
    check "$free MB: auto" same -b auto
    check "$free MB: auto, verified" same -b auto --verify
    free_memory
done

# Free memory changes during batches: each file must be complete or reported.
changing_memory() {
    local code failed
    for _ in 1 2 3; do
        occupy 200 && free_memory
    done &
    local occupier=$!
    rm -rf out
    gpufilter smooth -b cuda many/*.ppm --out-dir out 2>errors
    code=$?
    wait $occupier
    failed=$(grep -c '^gpufilter: many/' errors)
    cat errors
    for file in out/*.ppm; do
        [ ! -e "$file" ] || cmp "golden-many/${file#*/}" "$file" || return 1
    done
    nothing && { [ $code -eq 0 ] && all_there || [ $code -eq 3 ] ||
        [ "$(find out -name '*.ppm' | wc -l)" -eq $((40 - failed)) ]; }
}
check "free memory changes during a batch" changing_memory

# ---- compute-sanitizer ---------------------------------------------------------------------------

sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
if [ -x "$sanitizer" ]; then
    for tool in memcheck initcheck; do
        check "compute-sanitizer $tool" "$sanitizer" --tool $tool --error-exitcode 9 gpufilter smooth -q -f -b cuda \
            --axis xy photo.png out.png
    done
else
    skip 2 "gpu_faults: no compute-sanitizer"
fi
check_summary
