# shellcheck shell=bash
# To be sourced by tests of batches: a directory with many images, their expected outputs, and checks of a run. `build` must
# be set; `images`, `directories` and `broken` are optional.
. tests/support/check.sh
export PATH=$build:$PATH LC_ALL=C
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit
ulimit -c 0

# Images of several sizes in directories; every tenth one is broken (broken=0: none).
for i in $(seq -w "${images:-300}"); do
    directory=in/$((10#$i % ${directories:-7}))
    mkdir -p $directory
    n=$((8 + 10#$i % 5))
    { printf 'P5\n%d 9\n255\n' $n && head -c $((9 * n)) <(printf "picture %d of many. " {1..20}"$i"); } >$directory/$i.pgm
    [ $((10#$i % 10)) -ne 3 ] || [ "${broken:-1}" -eq 0 ] || truncate -s -4 $directory/$i.pgm
done
gpufilter smooth -R in --out-dir want >/dev/null 2>want.log
code=$?

summary() { grep -q "^$1 done, $2 failed, $3 skipped in " "$4"; }
same() { diff -r -x '.*' want "$1"; }
