#!/usr/bin/env bash
# Chains of gpufilter run: tests/system/run.sh BUILD. They must write the bytes of the single commands, run one after the
# other through files of the same sample type.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
samples=$PWD/samples
export PATH=$build:$PATH LC_ALL=C
cd "$work" || exit
gpufilter smooth -q --crop 100,80,160,120 --stages enhance --gain 1 "$samples/scene.png" u8.png
gpufilter smooth -q --crop 10,20,150,130 --stages enhance --gain 1 "$samples/gradient16.png" u16.png
gpufilter smooth -q --crop 100,80,90,70 --depth f32 "$samples/scene.png" f32.tif

# ---- random chains -------------------------------------------------------------------------------

steps=('median' 'median radius=2' 'gaussian sigma=1.5' 'box radius=3' 'sharpen' 'erode' 'dilate radius=2' 'smooth radius=1 axis=xy'
    'normalize' 'percentile percent=30' 'hist bins=7' 'axis-sum axis=y' 'axis-sum' 'hist --statistics')
same_as_single_steps() { # INPUT STEP...: run both, and compare the image and all results
    local input=$1 extension=${1##*.} now=$1 i=0 words=() step
    rm -f step.* results chain.* && : >results
    for step in "${@:2}"; do
        words+=('!')
        # shellcheck disable=SC2206 # a step is words
        words+=($step)
        case $step in
        hist* | axis-sum*) # shellcheck disable=SC2086
            gpufilter run --csv "$now" ! $step >>results || return ;;
        *)
            # shellcheck disable=SC2086
            gpufilter run -q -b golden "$now" ! $step ! write "step.$i.$extension" || return
            now=step.$((i++)).$extension
            ;;
        esac
    done
    gpufilter run --json "${options[@]}" "$input" "${words[@]}" ! write "chain.$extension" >json || return
    [ "$now" = "$input" ] || cmp "chain.$extension" "$now" || return
    python3 - <<'END'
import csv, json
steps = [step for step in json.load(open("json"))["steps"] if "result" in step]
rows = list(csv.reader(open("results")))
for step in steps:
    table = next(iter(step["result"].values()))
    header, rows = rows[0], rows[1:]
    assert header == list(table), (header, list(table))
    columns = [c if isinstance(c, list) else [c] for c in table.values()]
    for row in zip(*columns):
        given = ["" if x is None else float(x) if not isinstance(x, str) else x for x in row]
        text = [float(x) if not isinstance(y, str) else x for x, y in zip(rows[0], given)]
        assert given == text, (given, text)
        rows = rows[1:]
assert not rows, rows
END
}
RANDOM=57
for ((n = 0; n < $(by_tier 6 24 300); n++)); do
    chain=()
    for ((i = 0; i <= RANDOM % 6; i++)); do chain+=("${steps[RANDOM % ${#steps[@]}]}"); done
    options=(-b "$([ $((n % 3)) -eq 0 ] && echo golden || echo cpu)" --rows-per-strip $((n % 4 * 7)) -j $((1 + n % 2)))
    for input in u8.png u16.png f32.tif; do
        check "$input ! ${chain[*]} (${options[*]})" same_as_single_steps "$input" "${chain[@]}"
    done
done
options=(--verify)
check "with --verify" same_as_single_steps u8.png 'median radius=2' normalize 'gaussian sigma=3' 'hist bins=8'

# ---- other steps ---------------------------------------------------------------------------------

equal() { # FILE "COMMAND" "COMMAND"...: all write the same bytes to FILE
    local file=$1 first=
    shift
    for command; do
        rm -f "$file"
        eval "$command" || return
        [ -n "$first" ] || { cp "$file" first && first=yes; }
        cmp "$file" first || return
    done
}
check "depth" equal o.png 'gpufilter gaussian -q --depth 16 u8.png o.png' 'gpufilter run -q u8.png ! depth 16 ! gaussian ! write o.png'
check "depth of a writer" equal o.png 'gpufilter run -q u16.png ! gaussian ! depth 8 ! write o.png' \
    'gpufilter run -q u16.png ! gaussian ! write o.png depth=8'
check "linear" equal o.png 'gpufilter gaussian -q --linear u8.png o.png' 'gpufilter run -q u8.png ! linear ! gaussian ! write o.png'
check "open" equal o.png 'gpufilter run -q u8.png ! open radius=2 ! write o.png' \
    'gpufilter run -q u8.png ! erode radius=2 ! dilate radius=2 ! write o.png'
check "close" equal o.png 'gpufilter run -q u8.png ! close radius=2 ! write o.png' \
    'gpufilter run -q u8.png ! dilate radius=2 ! erode radius=2 ! write o.png'
check "input" equal o.png 'gpufilter sharpen -q u8.png o.png' \
    'gpufilter run -q -f u8.png ! median ! gaussian ! write other.png ! input ! sharpen ! write o.png'
check "writers in the middle" equal m.png 'gpufilter median -q u8.png m.png' \
    'gpufilter run -q -f u8.png ! write u.tif ! median ! write m.png ! gaussian ! write g.png ! hist'
check "pages" equal o.tif 'gpufilter run -q --page all u8.png ! median ! write o.tif' 'gpufilter median -q u8.png o.tif'

# ---- outputs and exit codes ----------------------------------------------------------------------

differs() { # a difference is exit code 1, and outputs are written
    rm -f o.png
    gpufilter run -q u8.png ! median ! write o.png ! compare u8.png
    [ $? -eq 1 ] && gpufilter median -q -f u8.png m.png && cmp o.png m.png &&
        gpufilter run -q u8.png ! median ! compare o.png
}
check "compare" differs
none_appears() {
    rm -f p.png q.png
    ! gpufilter run -q u8.png ! median ! write p.png ! gaussian ! write missing/q.png && [ ! -e p.png ] &&
        ! gpufilter run -q u8.png ! median ! write p.png ! gaussian ! write /dev/full 2>error && [ ! -e p.png ] &&
        touch q.png && ! gpufilter run -q u8.png ! median ! write p.png ! write q.png 2>error && [ ! -e p.png ] &&
        ! compgen -G '.*.tmp'
}
check "after an error, no output appears" none_appears
check "one output on standard output" equal o.png 'gpufilter median -q u8.png o.png' \
    'gpufilter run -q -f u8.png ! write other.png ! median ! write - format=png >o.png'
slow_reader() { # while strip by strip is written slowly, later ones are computed, in other rows of the ring
    local rows slowly='import os, time
while data := os.read(0, 30000): os.write(1, data); time.sleep(0.002)'
    draw --photo 3000 200 3 wide.ppm && gpufilter erode -q wide.ppm want.ppm || return
    for rows in 6 6 12; do
        gpufilter run -q -f -j 3 --rows-per-strip $rows wide.ppm ! erode ! write - format=ppm ! box radius=10 ! write m.ppm |
            python3 -c "$slowly" | cmp - want.ppm || return
    done
}
check "a slow reader of standard output" slow_reader
plan_is_exact() { # the plan writes nothing
    rm -f o.png
    gpufilter run --dry-run u8.png ! linear ! median radius=2 ! write o.png ! normalize ! hist >plan && [ ! -e o.png ] || return
    grep -qF 'to 160x120 RGB f32' plan && grep -qF 'of 160x120 RGB u8' plan && grep -qF 'above and below: 2, 2' plan &&
        grep -qF 'after axis-sum' plan
}
check "the plan" plan_is_exact
batch() {
    mkdir -p many/sub && cp u8.png many/a.png && cp u16.png many/sub/b.png
    gpufilter run -q -p "median ! write '{stem}-m.tif' ! gaussian" --out-dir out -R many || return
    gpufilter median -q u8.png m.tif && gpufilter run -q -f u16.png ! median ! gaussian ! write g.png || return
    cmp m.tif out/a-m.tif && cmp g.png out/sub/b.png || return
    rm out/sub/b-m.tif # an item without one of its outputs runs again
    gpufilter run --resume -p "median ! write '{stem}-m.tif' ! gaussian" --out-dir out -R many 2>summary || return
    grep -q '^1 done, 0 failed, 1 skipped' summary && [ -s out/sub/b-m.tif ]
}
check "a batch with two outputs" batch

check_summary
