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
    list "$2" >"$work/after" && [ "$(wc -l <"$1.tags")" -ge 30 ] && diff "$1.tags" "$work/after"
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
    if [ ! -e "$work/in.$1.tags" ]; then
        gpufilter smooth -q --strip "$samples/scene.png" "$work/in.$1" && make_input "$work/in.$1" &&
            list "$work/in.$1" >"$work/in.$1.tags" || return 1
    fi
    gpufilter smooth -q -f "$work/in.$1" "$work/out.$2"
}

if ! command -v exiftool >/dev/null; then
    skip "$(wc -w <<<"$pairs")" "no exiftool"
    check_summary
    exit
fi
make_profile "$work/profile"

# What describes the pixels follows them, or goes; what is lost is reported.

tag() { # FILE TAG...: print the values of tags
    local file=$1
    shift
    exiftool -s3 -n "${@/#/-}" "$file" | xargs
}

make_photo() { # a JPEG of 60x40 with sizes, a thumbnail, an XMP that announces a video, and the profile
    gpufilter smooth -q -f --strip --crop 0,0,60,40 "$samples/scene.png" "$work/thumb.jpg" &&
        gpufilter smooth -q -f --strip --crop 0,0,60,40 "$samples/scene.png" "$work/photo.jpg" &&
        exiftool -q -overwrite_original -Orientation#=6 -ExifImageWidth=60 -ExifImageHeight=40 "-ThumbnailImage<=$work/thumb.jpg" \
            -XMP-GCamera:MicroVideo=1 -XMP-GCamera:MicroVideoOffset=4000 -XMP-dc:Title=title "-icc_profile<=$work/profile" "$work/photo.jpg"
}

adapted() { # OUTPUT SIZE OPTION...: the EXIF data of the output has this size, and no thumbnail
    local out=$work/adapted.$1 size=$2
    shift 2
    gpufilter smooth -q -f "$@" "$work/photo.jpg" "$out" &&
        [ "$(tag "$out" ExifImageWidth ExifImageHeight ImageWidth ImageHeight ThumbnailOffset)" = "$size $size" ]
}

without_video() { # the XMP stays, without the video, and a note says so
    gpufilter smooth -f "$work/photo.jpg" "$work/video.jpg" 2>"$work/notes" && grep -q 'photo.jpg: the video' "$work/notes" &&
        [ "$(tag "$work/video.jpg" XMP-GCamera:all XMP:Title)" = title ]
}

grey_without_rgb_profile() { # OUTPUT
    exiftool -q -overwrite_original "-icc_profile<=$work/profile" "$work/grey.jpg" &&
        gpufilter smooth -f "$work/grey.jpg" "$work/grey-out.$1" 2>"$work/notes" && grep -q 'ICC profile dropped' "$work/notes" &&
        [ -z "$(tag "$work/grey-out.$1" ICC_Profile:all)" ]
}

check "photo" make_photo
check "thumbnail of the photo" [ -n "$(tag "$work/photo.jpg" ThumbnailOffset)" ]
for out in jpg png tif; do
    check "$out: the sizes follow --autorotate" adapted $out "40 60" --autorotate
    check "$out: the sizes follow --crop" adapted $out "20 10" --crop 3,4,20,10
    check "$out: sizes without a change" adapted $out "60 40"
done
check "XMP without its video" without_video
gpufilter smooth -q -f --strip <(printf 'P5\n8 4\n255\n%32s' '') "$work/grey.jpg"
for out in jpg png tif; do
    check "$out: grey without an RGB profile" grey_without_rgb_profile $out
done
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
