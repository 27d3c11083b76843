#!/usr/bin/env bash
# Plots: tests/system/plot.sh BUILD. Skipped where cairo is not there, which must be said in one line.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
gpufilter=$(cd "${1:-build}" && pwd)/gpufilter
samples=$PWD/samples
cd "$work" || exit 1

# What a program without cairo says, and that it left nothing.
if ! "$gpufilter" hist -q --plot try.png "$samples/page.png" 2>reason; then
    if grep -q cairo reason; then
        check "one line" [ "$(wc -l <reason)" -eq 1 ]
        check "no plot is left" [ ! -e try.png ]
        skip 1 "plots: $(cat reason)"
        check_sum
        exit
    fi
fi

# A picture of the right size, white for the most part, with something on it.
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
check "a logarithmic one" is_plot log.png
check "it is another" [ "$(cksum <log.png)" != "$(cksum <rgb.png)" ]
for axis in x y; do
    "$gpufilter" axis-sum -q -a $axis --plot "sums-$axis.png" "$samples/scene.png"
    check "sums along $axis" is_plot "sums-$axis.png"
done
# The same numbers make the same plot.
"$gpufilter" hist -q -b golden --plot again.png "$samples/page.png"
check "the same plot from golden" cmp try.png again.png

says() { # WHAT CODE MESSAGE ARGUMENT...: fails with that code and one line that holds the message
    local what=$1 code=$2 message=$3 got
    shift 3
    "$gpufilter" "$@" >out 2>reason
    got=$?
    check "$what: exit $code" [ $got -eq "$code" ]
    check "$what: one line" [ "$(wc -l <reason)" -eq 1 ]
    check "$what: the reason" grep -q -e "$message" reason
}
moves() { # SVG: how often the pen is put down
    grep -o 'M ' "$1" | wc -l
}
is_svg() { # FILE
    grep -q '<svg ' "$1" && grep -q '</svg>' "$1" && [ "$(grep -c '<path' "$1")" -gt 3 ]
}
"$gpufilter" hist -q --plot try.svg "$samples/page.png"
check "a histogram as SVG" is_svg try.svg
dry() { [ "$("$gpufilter" hist --dry-run --plot dry.svg "$samples/page.png")" = dry.svg ] && [ ! -e dry.svg ]; }
check "a dry run lists a plot" dry
# Little, nothing, and what cannot be drawn.
printf 'P5\n1 1\n255\n\0' >one.pgm
printf 'Pf\n2 2\n-1\n\0\0\300\177\0\0\200\177\0\0\200\377\0\0\300\177' >odd.pfm
for image in one.pgm odd.pfm; do
    for command in "hist --bins 1" "hist --log-scale" "axis-sum"; do
        # shellcheck disable=SC2086 # words
        check "$command $image" "$gpufilter" $command -q -f --plot odd.png $image
        check "it is a picture" "$gpufilter" info odd.png
    done
    says "$image has nothing for a logarithmic axis" 1 'no value above zero' axis-sum -q --log-scale --plot none.png $image
    check "and no plot" [ ! -e none.png ]
done
# A line breaks where a logarithmic axis has no place for it.
for sign in 077 277; do
    printf 'Pf\n1 5\n-1\n\0\0\200\077\0\0\200\077\0\0\200%b\0\0\200\077\0\0\200\077' "\\0$sign" >gap.pfm
    "$gpufilter" axis-sum -q --log-scale --plot "gap-$sign.svg" gap.pfm
done
check "a line breaks at a negative sum" [ "$(moves gap-277.svg)" -eq $(($(moves gap-077.svg) + 1)) ]
# More points than columns of pixels: few are drawn, and the one that stands out is among them.
{ printf 'P5\n1 60001\n255\n'; yes | head -c 30000 | tr 'y\n' '\0\1'; printf '\377'; yes | head -c 30000 | tr 'y\n' '\0\1'; } >tall.pgm
"$gpufilter" axis-sum -q --plot tall.svg tall.pgm
curve() { # SVG: how many points its line has, and how high it is
    grep -E 'stroke-width(:1\.1;|="1\.1")' "$1" | grep -o ' d="[^"]*"' | tr 'ML' '\n\n' | awk 'NF >= 2 {
        n++
        low = n == 1 || $2 < low ? $2 : low
        high = n == 1 || $2 > high ? $2 : high
    } END {print n, int(high - low)}'
}
check "a point that stands out is drawn" [ "$(curve tall.svg | awk '{print ($1 > 500 && $1 < 5000 && $2 > 200)}')" = 1 ]
# Axes of all sizes have numbers on them.
sound() { # FILE
    is_svg "$1" && ! grep -qiE '(nan|inf)[ "]' "$1"
}
for range in -1e-6,1e-6 1e20,3e20 -5e9,-4e9 0,1e-320 1,1.0000000000000002 -1e300,1e300; do
    "$gpufilter" hist -q -n 7 --range=$range --plot "range$range.svg" one.pgm
    check "bins from ${range/,/ to }" sound "range$range.svg"
done
for bits in '\0000\0000\0200\0277' '\0000\0000\0200\0000' '\0001\0000\0000\0000' '\0377\0377\0177\0377' '\0000\0000\0000\0106' '\0000\0044\0164\0307'; do
    { printf 'Pf\n1 2\n-1\n'; printf "%b" "$bits$bits"; } >flat.pfm
    "$gpufilter" axis-sum -q -f --plot flat.svg flat.pfm
    check "sums that are all $bits" sound flat.svg
done
# Curves whose bins are narrower than their outlines do not hide each other: little is blue alone.
"$gpufilter" hist -q --channel all --bins 65536 --plot crowded.png "$samples/scene.png"
check "a crowded one" is_plot crowded.png
for curve in r g; do
    check "its $curve shows" [ "$("$gpufilter" hist --csv --bins 2 --channel $curve crowded.png | tail -n 1 | sed 's/.*,//')" -gt 950000 ]
done
# To standard output, as PNG unless told otherwise; the text goes elsewhere.
"$gpufilter" hist -n 2 --plot - "$samples/page.png" >out.png 2>text
check "a plot to a pipe" is_plot out.png
check "its text" grep -q '^  1 ' text
"$gpufilter" hist -q --plot - --plot-format svg "$samples/page.png" >out.svg
check "an SVG to a pipe" cmp out.svg try.svg
"$gpufilter" hist -q --plot plot.dat --plot-format png "$samples/page.png"
check "a format against the name" cmp plot.dat try.png
says "a name that says nothing" 2 'extension must be' hist -q --plot p.gif one.pgm
# A plot obeys the rules of every output.
echo precious >kept.png
says "an existing plot is refused" 1 'kept.png: already exists' hist -q --plot kept.png one.pgm
check "and kept" grep -q precious kept.png
# It appears together with the other outputs, or none does; no two have one name.
says "a mask and a plot of one name" 2 'p.png' hist -q -n 8 -x 0 --mask p.png --plot p.png one.pgm
says "by another way" 2 'p.png' hist -q -n 8 -x 0 --mask p.png --plot ./p.png one.pgm
says "even with force" 2 'kept.png' hist -q -f -n 8 -x 0 --mask kept.png --plot "$PWD/kept.png" one.pgm
says "two to standard output" 2 'standard output' hist -q -n 8 -x 0 --out - --plot - one.pgm
echo precious >kept.csv
check "a plot that cannot be written" [ "$(ulimit -f 8; "$gpufilter" hist -q -f -n 4096 -C all -x 200 --out kept.csv --plot new.svg \
    "$samples/scene.png" 2>&1 | grep -c 'File too large')" -eq 1 ]
check "keeps the others from appearing" grep -q precious kept.csv
says "nothing to draw" 1 'above zero' axis-sum -q -f --log-scale --plot kept.png one.pgm
check "all is as it was" [ "$(cat kept.png kept.csv | grep -c precious)" -eq 2 -a ! -e p.png -a ! -e new.svg ]
check "a failed run leaves none" [ -z "$("$gpufilter" hist -q --plot none.png absent.png 2>/dev/null; ls none.png 2>/dev/null)" ]
check "no litter" [ -z "$(find . -name '*.tmp')" ]

check_sum
