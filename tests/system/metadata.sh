#!/usr/bin/env bash
# Compare the metadata of inputs and outputs: tests/system/metadata.sh BUILD. exiftool writes the metadata of a phone's
# photograph to an input, and reads it from the output.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
export PATH=$(cd "${1:-build}" && pwd):$PATH
. tests/support/check.sh
samples=$PWD/samples

# INPUT:OUTPUT, by extension
pairs="jpg:jpg jpg:png jpg:tif png:jpg png:png png:tif tif:jpg tif:png tif:tif"

# Tags that describe how pixels are stored, or that an output gets anew.
stored='BitsPerSample|Compression|ImageWidth|ImageHeight|PhotometricInterpretation|PlanarConfiguration|Predictor|RowsPerStrip'
stored+='|SampleFormat|SamplesPerPixel|StripByteCounts|StripOffsets|ExtraSamples|YCbCrPositioning|XMPToolkit'

make_profile() { # FILE: an ICC profile without tags
    { printf '\0\0\0\x84\0\0\0\0\4\0\0\0mntrRGB XYZ ' && head -c 12 /dev/zero && printf acsp && head -c 92 /dev/zero; } >"$1"
}

make_input() { # FILE
    exiftool -q -overwrite_original -Make=Phone -Model="Model 9" -Orientation#=6 -XResolution=96 -YResolution=72 \
        -ResolutionUnit=inches -Software=v1.2 -ModifyDate="2026:01:02 03:04:05" -ImageDescription="A scene" -Artist=me \
        -Copyright="nobody" -DateTimeOriginal="2026:01:02 03:04:05" -SubSecTimeOriginal=123 -OffsetTimeOriginal=+01:00 \
        -ExposureTime=1/250 -FNumber=1.8 -ISO=64 -ExposureCompensation=-1/3 -LensModel="Lens 26mm" -UserComment=hello \
        -GPSLatitude=52.5 -GPSLatitudeRef=N -GPSLongitude=13.4 -GPSLongitudeRef=E -GPSAltitude=34.5 -InteropIndex=R98 \
        -XPTitle=title -XMP:Rating=4 -XMP:Creator=me -PixelsPerUnitX=3780 -PixelsPerUnitY=2835 -PixelUnits=meters "-icc_profile<=$work/profile" "$1"
}

list() { # FILE: print the groups that all formats can store, and the values of their tags
    exiftool -a -G1 -s -sort "$1" | grep -E '^\[(IFD0|ExifIFD|InteropIFD|GPS|XMP-[a-z]+|ICC-header)\]' | grep -vE " ($stored) " | sort
}

same_tags() { # IN OUT
    list "$1" >"$work/before" && list "$2" >"$work/after" && [ "$(wc -l <"$work/before")" -ge 30 ] &&
        diff "$work/before" "$work/after"
}

same_profile() { exiftool -icc_profile -b "$1" | cmp - "$work/profile"; }

resolution_of() { # FILE: print pixels per inch as the file format stores them
    case $1 in
    *.jpg) exiftool -s3 -n -JFIF:XResolution -JFIF:YResolution "$1" ;;
    *.tif) exiftool -s3 -n -IFD0:XResolution -IFD0:YResolution "$1" ;;
    *.png) exiftool -s3 -n -PixelsPerUnitX -PixelsPerUnitY "$1" | awk '{printf "%.0f\n", $1 * 0.0254}' ;;
    esac
}

same_resolution() { [ "$(resolution_of "$1")" = $'96\n72' ]; }

pair() { # INPUT OUTPUT
    gpufilter smooth -q -f --strip "$samples/scene.png" "$work/in.$1" && make_input "$work/in.$1" || return 1
    gpufilter smooth -q -f "$work/in.$1" "$work/out.$2"
}

if ! command -v exiftool >/dev/null; then
    skip "$(wc -w <<<"$pairs")" "no exiftool"
    check_summary
    exit
fi
make_profile "$work/profile"
for pair in $pairs; do
    in=$work/in.${pair%:*} out=$work/out.${pair#*:}
    check "$pair" pair "${pair%:*}" "${pair#*:}"
    check "$pair: EXIF, GPS and XMP" same_tags "$in" "$out"
    check "$pair: ICC profile" same_profile "$out"
    check "$pair: resolution" same_resolution "$out"
    gpufilter smooth -q -f --strip "$in" "$out"
    check "$pair: --strip" [ -z "$(list "$out")" ]
done
check_summary
