#!/usr/bin/env bash
# Count instructions per sample of u8, u16 and f32 images: instructions.sh PLUGIN INPUT QEMU PROGRAM LEVEL... QEMU may have
# options. INPUT is an 8-bit PNG. One row per command, three columns per SIMD level. Reading and writing PNM is included.
set -euo pipefail
plugin=$1 input=$2 qemu=$3 program=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for depth in 8 16 f32; do
    # shellcheck disable=SC2086 # words
    $qemu "$program" smooth -q --stages enhance --gain 1 --depth $depth --format "$([ $depth = f32 ] && echo pfm || echo pam)" \
        "$input" "$work/$depth"
done
samples=$(head -c 200 "$work/8" | awk '/WIDTH|HEIGHT|DEPTH/ { n = (n ? n : 1) * $2 } END { print n }' 2>/dev/null)

count() { # DEPTH LEVEL COMMAND...: print the instructions per sample
    local depth=$1 level=$2 total
    shift 2
    case $1 in
    hist | axis-sum) set -- "$@" "$work/$depth" ;;
    dot) set -- "$@" "$work/$depth" "$work/$depth" ;;
    *) set -- "$@" --force --format "$([ "$depth" = f32 ] && echo pfm || echo pam)" "$work/$depth" "$work/out" ;;
    esac
    # shellcheck disable=SC2086
    total=$($qemu -plugin "$plugin" "$program" "$@" -q -j 1 --backend cpu --simd "$level" 2>&1 | sed -n 's/instructions: //p')
    awk -v n="$total" -v samples="$samples" 'BEGIN { printf "%9.2f", n / samples }'
}

printf '%-32s' 'instructions per sample'
for level; do printf '%27s' "$level: u8, u16, f32"; done
echo
while read -r command; do
    printf '%-32s' "$command"
    for level; do
        # shellcheck disable=SC2086
        for depth in 8 16 f32; do count $depth "$level" $command; done
    done
    echo
done <<'END'
smooth --stages enhance
smooth
smooth -k --axis xy
smooth -k --axis xy --radius 20
gaussian --sigma 1
gaussian --sigma 5
box --radius 5
sharpen
convolve --kernel 1,2,1,2,4,2,1,2,1
median --radius 1
median --radius 5
erode --radius 3
resize --scale 0.5
normalize
hist --bins 8 --channel all
hist --bins 256 --channel all
axis-sum
axis-sum --axis y
dot
END
