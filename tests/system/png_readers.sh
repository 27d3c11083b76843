#!/usr/bin/env bash
# Compare our PNGs in other readers: tests/system/png_readers.sh BUILD. Those of pngcheck, libpng, libspng, stb_image
# and Pillow that are installed read files of each compression, type and kind of content, and must return the samples
# that the same job writes as PAM.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
gpufilter=$(cd "${1:-build}" && pwd)/gpufilter
draw=${gpufilter%/gpufilter}/draw
tools=$PWD/tests/support/tools samples=$PWD/samples
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit

fail() {
    failed=$((failed + 1))
    echo "FAIL $*" >&2
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIP 1: $*"
}

job() { # COMPRESSION FORMAT IN OUT
    "$gpufilter" smooth -q -f -b cpu -r 1 -k -c "$1" --format "$2" "$3" "$4" || fail "job $*"
}

image() { # NAME WIDTH HEIGHT CHANNELS BYTES: read samples from standard input
    local types=(- GRAYSCALE GRAYSCALE_ALPHA RGB RGB_ALPHA) max=(- 255 65535)
    printf 'P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n' \
        "$2" "$3" "$4" "${max[$5]}" "${types[$4]}" >"$1.in"
    head -c $(($2 * $3 * $4 * $5)) >>"$1.in"
}

# ---- pictures ------------------------------------------------------------------------------------

"$draw" --photo 400 300 7 photo.ppm
"$draw" --16 --photo 300 200 7 photo16.png
"$draw" --poster 500 400 poster.png
cp "$samples/card.png" .
for name in photo16 poster card; do
    job fast pam $name.png $name.pam
done
job fast pam photo.ppm photo.pam
shape() { # PAM: print its width, height, channels and bytes per sample
    head -n 5 "$1" | awk '{n[$1] = $2} END {print n["WIDTH"], n["HEIGHT"], n["DEPTH"], (n["MAXVAL"] > 255 ? 2 : 1)}'
}
for name in photo photo16 poster card; do
    read -r width height channels bytes < <(shape $name.pam)
    height=$((height < 400 ? height : 400))
    tail -n +8 $name.pam >samples
    # shellcheck disable=SC2094 # they are read only
    image $name "$width" "$height" "$channels" "$bytes" <samples
    for other in 1 2 4; do # the same samples as pixels with other numbers of channels
        image $name-$other $((width * channels / other / 2)) $((height / 2)) $other "$bytes" <samples
    done
done
tail -n +8 poster.pam | image wide 60001 3 3 1
tail -n +8 photo16.pam | image wide16 70001 2 1 2
for channels in 1 2 3 4; do
    printf '\x12\x34\x56\x78\x9a\xbc\xde\xf0' | image one-$channels 1 1 $channels 1
    printf '\x12\x34\x56\x78\x9a\xbc\xde\xf0' | image one16-$channels 1 1 $channels 2
done

for in in *.in; do
    name=${in%.in}
    job fast pam "$in" "$name.pam"
    tail -n +8 "$name.pam" >"$name.raw"
    for compression in none fast balanced small; do
        job $compression png "$in" "$name.$compression.png"
        echo "$name.$compression.png $name.raw"
    done
done >pairs
[ -s pairs ] || fail "no files were written"
# Each reader must report these errors; otherwise its other results mean nothing.
cp one-3.fast.png broken.png
printf '\x55' | dd of=broken.png bs=1 seek=45 conv=notrunc 2>/dev/null
invalid=("broken.png one-3.raw" "poster.fast.png card.raw")

# ---- readers -------------------------------------------------------------------------------------

agree() { # READER PNG RAW
    "./$1" "$2" 2>>reasons | cmp -s - "$3"
}

read_all() { # READER
    while read -r png raw; do
        if agree "$1" "$png" "$raw"; then
            passed=$((passed + 1))
        else
            fail "$1 reads other samples from $png"
        fi
    done <pairs
    local pair
    for pair in "${invalid[@]}"; do
        # shellcheck disable=SC2086 # two words
        if agree "$1" $pair; then
            fail "$1 does not detect that $pair differ"
        fi
    done
}

reader() { # NAME PACKAGE FLAG...
    local name=$1 package=$2
    shift 2
    if ${CC:-cc} -O1 "$tools/png_readers.c" "$@" -o "$name" 2>reasons; then
        read_all "$name"
    else
        skip "no $package"
    fi
}

reader libpng libpng-dev -lpng
reader libspng libspng-dev -DUSE_SPNG -lspng
reader stb libstb-dev -DUSE_STB -I/usr/include/stb -lm

if command -v pngcheck >/dev/null; then
    while read -r png _; do
        if pngcheck -q "$png" >>reasons 2>&1; then
            passed=$((passed + 1))
        else
            fail "pngcheck: $(pngcheck -q "$png")"
        fi
    done <pairs
    pngcheck -q broken.png >/dev/null && fail "pngcheck does not detect that broken.png is broken"
else
    skip "no pngcheck"
fi

pillow=
for python in python3 /usr/bin/python3; do
    "$python" -c 'import PIL' 2>/dev/null && pillow=$python && break
done
if [ -n "$pillow" ]; then
    "$pillow" "$tools/png_pillow.py" <pairs >out || fail "Pillow: $(tail -n 1 out)"
    passed=$((passed + $(grep -c '^good' out)))
    while read -r line; do
        fail "Pillow: $line"
    done < <(grep -v '^good' out)
    [ "$(printf '%s\n' "${invalid[@]}" | "$pillow" "$tools/png_pillow.py" | grep -c '^good')" -eq 0 ] ||
        fail "Pillow does not detect the invalid files"
else
    skip "no python3-pil"
fi

[ $failed -eq 0 ] || cat reasons
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
