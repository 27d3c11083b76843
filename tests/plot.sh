#!/usr/bin/env bash
# Plots: tests/plot.sh BUILD. Skipped where cairo is not there, which must be said in one line.
set -uo pipefail
cd "$(dirname "$0")/.."
gpufilter=$PWD/${1:-build}/gpufilter
samples=$PWD/samples
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >log 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        cat log
    fi
}

# What a program without cairo says, and that it left nothing.
if ! "$gpufilter" hist -q --plot try.png "$samples/page.png" 2>reason; then
    if grep -q cairo reason; then
        check "one line" [ "$(wc -l <reason)" -eq 1 ]
        check "no plot is left" [ ! -e try.png ]
        echo "SKIP plots: $(cat reason)"
        skipped=1
        echo "$passed passed, $failed failed, $skipped skipped"
        [ $failed -eq 0 ]
        exit
    fi
fi

# A picture of the right size, white for the most part, with something on it.
is_plot() { # PNG
    "$gpufilter" info "$1" | grep -q '1280x800 RGB' &&
        "$gpufilter" hist --csv --bins 2 "$1" | awk -F , 'END {exit !($NF > 400000 && $NF < 1024000)}'
}
check "a histogram as PNG" is_plot try.png
"$gpufilter" hist -q --channel all --plot rgb.png "$samples/scene.png"
check "three channels as PNG" is_plot rgb.png
channel() { "$gpufilter" hist --csv --channel "$1" rgb.png | sed 1d; }
check "channels have colours" [ "$(channel r)" != "$(channel g)" ]
"$gpufilter" hist -q --channel all --log --plot log.png "$samples/scene.png"
check "a logarithmic one" is_plot log.png
check "it is another" [ "$(cksum <log.png)" != "$(cksum <rgb.png)" ]
for axis in x y; do
    "$gpufilter" axis-sum -q -a $axis --plot "sums-$axis.png" "$samples/scene.png"
    check "sums along $axis" is_plot "sums-$axis.png"
done
# The same numbers make the same plot.
"$gpufilter" hist -q -b golden --plot again.png "$samples/page.png"
check "the same plot from golden" cmp try.png again.png

is_svg() { # FILE
    grep -q '<svg ' "$1" && grep -q '</svg>' "$1" && [ "$(grep -c '<path' "$1")" -gt 3 ]
}
"$gpufilter" hist -q --plot try.svg "$samples/page.png"
check "a histogram as SVG" is_svg try.svg
# Little, nothing, and what cannot be drawn.
printf 'P5\n1 1\n255\n\0' >one.pgm
printf 'Pf\n2 2\n-1\n\0\0\300\177\0\0\200\177\0\0\200\377\0\0\300\177' >odd.pfm
for image in one.pgm odd.pfm; do
    for command in "hist --bins 1" "hist --log" "axis-sum" "axis-sum --log -a y"; do
        # shellcheck disable=SC2086 # words
        check "$command $image" "$gpufilter" $command -q -f --plot odd.png $image
        check "it is a picture" "$gpufilter" info odd.png
    done
done
# A plot obeys the rules of every output.
echo precious >kept.png
check "an existing plot is refused" grep -q 'kept.png: exists already' <("$gpufilter" hist -q --plot kept.png one.pgm 2>&1)
check "and kept" grep -q precious kept.png
check "a failed run leaves none" [ -z "$("$gpufilter" hist -q --plot none.png absent.png 2>/dev/null; ls none.png 2>/dev/null)" ]
check "no litter" [ -z "$(find . -name '*.tmp')" ]

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
