#!/usr/bin/env bash
# Plots: tests/system/plot.sh BUILD. Without cairo, the program must say so in one line, and the other tests are
# skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
gpufilter=$(cd "${1:-build}" && pwd)/gpufilter
samples=$PWD/samples
cd "$work" || exit 1

# Without cairo: one line, and no file.
if ! "$gpufilter" hist -q --plot try.png "$samples/page.png" 2>reason; then
    if grep -q cairo reason; then
        check "one line" [ "$(wc -l <reason)" -eq 1 ]
        check "no plot is left" [ ! -e try.png ]
        skip 1 "plots: $(cat reason)"
        check_summary
        exit
    fi
fi

# Check that a picture has the right size and is mostly, but not entirely, white.
is_plot() { # PNG
    "$gpufilter" info "$1" | grep '1280x800 RGB' >/dev/null &&
        "$gpufilter" hist --csv --bins 2 "$1" | awk -F , 'END {exit !($NF > 400000 && $NF < 1024000)}'
}
check "a histogram as PNG" is_plot try.png
"$gpufilter" hist -q --channel all --plot rgb.png "$samples/scene.png"
check "three channels as PNG" is_plot rgb.png
channel() { "$gpufilter" hist --csv --channel "$1" rgb.png | sed 1d; }
check "channels have colours" [ "$(channel r)" != "$(channel g)" ]
"$gpufilter" hist -q --channel all --log-scale --plot log.png "$samples/scene.png"
check "a logarithmic plot" is_plot log.png
check "it differs from the linear plot" [ "$(cksum <log.png)" != "$(cksum <rgb.png)" ]
for axis in x y; do
    "$gpufilter" axis-sum -q -a $axis --plot "sums-$axis.png" "$samples/scene.png"
    check "sums along $axis" is_plot "sums-$axis.png"
done
# The same numbers make the same plot.
"$gpufilter" hist -q -b golden --plot again.png "$samples/page.png"
check "the same plot from golden" cmp try.png again.png

fails() { # WHAT CODE MESSAGE ARGUMENT...: expect this exit code and one line with MESSAGE
    local what=$1 code=$2 message=$3 got
    shift 3
    "$gpufilter" "$@" >out 2>reason
    got=$?
    check "$what: exit $code" [ $got -eq "$code" ]
    check "$what: one line" [ "$(wc -l <reason)" -eq 1 ]
    check "$what: the reason" grep -q -e "$message" reason
}
count_subpaths() { # SVG: count the subpaths
    grep -o 'M ' "$1" | wc -l
}
is_svg() { # FILE
    grep -q '<svg ' "$1" && grep -q '</svg>' "$1" && [ "$(grep -c '<path' "$1")" -gt 3 ]
}
"$gpufilter" hist -q --plot try.svg "$samples/page.png"
check "a histogram as SVG" is_svg try.svg
dry() { [ "$("$gpufilter" hist --dry-run --plot dry.svg "$samples/page.png")" = dry.svg ] && [ ! -e dry.svg ]; }
check "a dry run lists a plot" dry
# A single value, no values, and values that cannot be drawn.
printf 'P5\n1 1\n255\n\0' >one.pgm
printf 'Pf\n2 2\n-1\n\0\0\300\177\0\0\200\177\0\0\200\377\0\0\300\177' >odd.pfm
for image in one.pgm odd.pfm; do
    for command in "hist --bins 1" "hist --log-scale" "axis-sum"; do
        # shellcheck disable=SC2086 # words
        check "$command $image" "$gpufilter" $command -q -f --plot odd.png $image
        check "its plot can be read" "$gpufilter" info odd.png
    done
    fails "$image has no values for a logarithmic axis" 1 'no value above zero' axis-sum -q --log-scale --plot none.png $image
    check "no plot is left for $image" [ ! -e none.png ]
done
# On a logarithmic axis, a line breaks at values that are not positive.
for sign in 077 277; do
    printf 'Pf\n1 5\n-1\n\0\0\200\077\0\0\200\077\0\0\200%b\0\0\200\077\0\0\200\077' "\\0$sign" >gap.pfm
    "$gpufilter" axis-sum -q --log-scale --plot "gap-$sign.svg" gap.pfm
done
check "a line breaks at a negative sum" [ "$(count_subpaths gap-277.svg)" -eq $(($(count_subpaths gap-077.svg) + 1)) ]
# More points than pixel columns: few are drawn, and the outlier is among them.
{ printf 'P5\n1 60001\n255\n'; yes | head -c 30000 | tr 'y\n' '\0\1'; printf '\377'; yes | head -c 30000 | tr 'y\n' '\0\1'; } >tall.pgm
"$gpufilter" axis-sum -q --plot tall.svg tall.pgm
curve() { # SVG: print the number of points of its line, and their range
    grep -E 'stroke-width(:1\.1;|="1\.1")' "$1" | grep -o ' d="[^"]*"' | tr 'ML' '\n\n' | awk 'NF >= 2 {
        n++
        low = n == 1 || $2 < low ? $2 : low
        high = n == 1 || $2 > high ? $2 : high
    } END {print n, int(high - low)}'
}
check "an outlier is drawn" [ "$(curve tall.svg | awk '{print ($1 > 500 && $1 < 5000 && $2 > 200)}')" = 1 ]
# Axes of all magnitudes have valid numbers.
has_numbers() { # FILE
    is_svg "$1" && ! grep -qiE '(nan|inf)[ "]' "$1"
}
for range in -1e-6,1e-6 1e20,3e20 -5e9,-4e9 0,1e-320 1,1.0000000000000002 -1e300,1e300; do
    "$gpufilter" hist -q -n 7 --range=$range --plot "range$range.svg" one.pgm
    check "bins from ${range/,/ to }" has_numbers "range$range.svg"
done
for bits in '\0000\0000\0200\0277' '\0000\0000\0200\0000' '\0001\0000\0000\0000' '\0377\0377\0177\0377' '\0000\0000\0000\0106' '\0000\0044\0164\0307'; do
    { printf 'Pf\n1 2\n-1\n'; printf "%b" "$bits$bits"; } >flat.pfm
    "$gpufilter" axis-sum -q -f --plot flat.svg flat.pfm
    check "sums that are all $bits" has_numbers flat.svg
done
# Curves whose bins are narrower than their outlines do not hide each other: little is blue alone.
"$gpufilter" hist -q --channel all --bins 65536 --plot crowded.png "$samples/scene.png"
check "65536 bins of three channels" is_plot crowded.png
for curve in r g; do
    check "its $curve curve is visible" [ "$("$gpufilter" hist --csv --bins 2 --channel $curve crowded.png | tail -n 1 | sed 's/.*,//')" -gt 950000 ]
done
# On standard output, a plot is PNG by default; the text goes to standard error.
"$gpufilter" hist -n 2 --plot - "$samples/page.png" >out.png 2>text
check "a plot on standard output" is_plot out.png
check "the text on standard error" grep -q '^  1 ' text
"$gpufilter" hist -q --plot - --plot-format svg "$samples/page.png" >out.svg
check "an SVG on standard output" cmp out.svg try.svg
"$gpufilter" hist -q --plot plot.dat --plot-format png "$samples/page.png"
check "--plot-format overrides the extension" cmp plot.dat try.png
fails "an unknown extension" 2 'extension must be' hist -q --plot p.gif one.pgm
# The rules for outputs apply to plots.
echo precious >kept.png
fails "an existing plot is not replaced" 1 'kept.png: already exists' hist -q --plot kept.png one.pgm
check "the existing plot is kept" grep -q precious kept.png
# All outputs appear or none; no two have the same name.
fails "a mask and a plot of the same name" 2 'p.png' hist -q -n 8 -x 0 --mask p.png --plot p.png one.pgm
fails "the same file by another path" 2 'p.png' hist -q -n 8 -x 0 --mask p.png --plot ./p.png one.pgm
fails "the same file with --force" 2 'kept.png' hist -q -f -n 8 -x 0 --mask kept.png --plot "$PWD/kept.png" one.pgm
fails "two outputs on standard output" 2 'standard output' hist -q -n 8 -x 0 --out - --plot - one.pgm
echo precious >kept.csv
check "a plot that cannot be written" [ "$(ulimit -f 8; "$gpufilter" hist -q -f -n 4096 -C all -x 200 --out kept.csv --plot new.svg \
    "$samples/scene.png" 2>&1 | grep -c 'File too large')" -eq 1 ]
check "no other output appears" grep -q precious kept.csv
fails "no value to draw" 1 'above zero' axis-sum -q -f --log-scale --plot kept.png one.pgm
check "all files are unchanged" [ "$(cat kept.png kept.csv | grep -c precious)" -eq 2 -a ! -e p.png -a ! -e new.svg ]
check "a failed run leaves no plot" [ -z "$("$gpufilter" hist -q --plot none.png absent.png 2>/dev/null; ls none.png 2>/dev/null)" ]
check "no temporary files" [ -z "$(find . -name '*.tmp')" ]

check_summary
