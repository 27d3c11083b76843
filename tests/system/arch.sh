#!/usr/bin/env bash
# Compare what this machine's program writes with what other backends, SIMD levels and processors write:
# tests/system/arch.sh BUILD [ARCH]... Prints one line per case, with the digest of its outputs if all agree.
#
# A case is a command on a small image; its digest covers the image, the extracted samples and the result that it writes.
# Programs of another processor are in BUILD/ARCH and run under qemu. Without ARCH, a few cases run on each
# processor whose compiler, libraries and qemu are installed (`make check-arch` installs them and runs all cases).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=${1:-build} cases_wanted=15
shift
archs=("$@")
[ $# -eq 0 ] || cases_wanted=all
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 skipped=0

# ---- programs ------------------------------------------------------------------------------------

names=() programs=() options=() # columns
column() { names+=("$1") programs+=("$2") options+=("$3"); }
levels() { # NAME COMMAND: one column for golden and for each SIMD level that the program can use
    local level
    column "$1golden" "$2" "--backend golden"
    for level in portable avx2 avx512 neon; do
        # shellcheck disable=SC2086 # words
        ! $2 smooth --backend cpu --simd $level --format pam samples/gradient16.png - >/dev/null 2>&1 ||
            column "$1$level" "$2" "--backend cpu --simd $level"
    done
}

program=$(realpath "$build/gpufilter")
levels '' "$program"
if "$program" smooth --backend cuda --format pfm samples/ramp.pfm - >/dev/null 2>&1; then
    column cuda "$program" "--backend cuda"
fi
if [ "$cases_wanted" != all ]; then
    for arch in aarch64 s390x; do
        if ! command -v "qemu-$arch" "$arch-linux-gnu-gcc" >/dev/null || ! [ -e "$build/$arch/libraries/complete" ]; then
            echo "SKIP $cases_wanted: no programs for $arch: make check-arch builds them"
            skipped=$((skipped + cases_wanted))
        elif env -u MAKEFLAGS -u MAKEOVERRIDES make -s ARCH=$arch BUILD="$build/$arch" "$build/$arch/gpufilter" >"$work/log" 2>&1; then
            archs+=("$arch")
        else
            tail "$work/log"
            failed=1
        fi
    done
fi
for arch in "${archs[@]}"; do
    [ "$arch" = "$(uname -m)" ] || levels "$arch-" "qemu-$arch $(realpath "$build/$arch/gpufilter")"
done

# ---- cases ---------------------------------------------------------------------------------------

inputs=(scene.ppm page.pgm gradient16.pam cutout.pam ramp.pfm)
make_inputs() {
    local convert=(smooth -q --backend golden --stages enhance --gain 1)
    "$program" "${convert[@]}" --crop 190,140,131,75 samples/scene.png "$work/scene.ppm" &&
        "$program" "${convert[@]}" --crop 200,300,67,90 samples/page.png "$work/page.pgm" &&
        "$program" "${convert[@]}" --crop 3,5,97,64 samples/gradient16.png "$work/gradient16.pam" &&
        "$program" "${convert[@]}" --crop 60,60,75,71 samples/cutout.png "$work/cutout.pam" &&
        "$program" "${convert[@]}" samples/ramp.pfm "$work/ramp.pfm" || exit
    for file in "${inputs[@]}"; do
        "$program" smooth -q --backend golden -k -a xy "$work/$file" "$work/second-$file" || exit
    done
    # Files to read.
    "$program" "${convert[@]}" -Q 90 samples/scene.png "$work/scene.jpg" || exit
    for name in none deflate lzw zstd; do
        "$program" "${convert[@]}" --tiff-compression $name "$work/gradient16.pam" "$work/$name.tif" || exit
    done
    for name in png npy ff bmp tga hdr pfm; do
        for file in "${inputs[@]}"; do
            ! "$program" "${convert[@]}" "$work/$file" "$work/read.$name" 2>/dev/null || break
        done
    done
}

# Print the arguments of each case. The outputs are named out.*.
cases() {
    local filter count kind parameters file word
    local copy="smooth -q --stages enhance --gain 1"
    # Encoders.
    for file in "${inputs[@]}"; do
        for word in none fast balanced small; do echo "$copy -c $word $file out.png"; done
        for word in none deflate lzw zstd; do echo "$copy --tiff-compression $word $file out.tif"; done
        for word in 30 75 95 100; do echo "$copy -Q $word $file out.jpg"; done
        for word in ppm pgm pam pfm npy ff bmp tga hdr raw; do echo "$copy $file out.$word"; done
        for word in 8 16 f32; do echo "$copy --depth $word $file out.tif"; done
        echo "smooth -q -k --linear $file out.png"
        echo "gaussian -q --premultiply on $file out.tif"
        echo "smooth -q -k --axis xy --depth 16 $file out.png"
    done
    # Decoders.
    for file in scene.jpg none.tif deflate.tif lzw.tif zstd.tif read.{png,npy,ff,bmp,tga,hdr,pfm}; do
        echo "$copy --no-sandbox $file out.pam"
        echo "hist --json --no-sandbox --bins 8 --extract 3 --out out.npy $file"
    done
    echo "resize -q --fast --fit 100x100 scene.jpg out.png"
    # Filters.
    while IFS=$'\t' read -r filter count kind parameters; do
        for file in "${inputs[@]}"; do
            printf '%s' "$filter"
            for word in $parameters; do
                word=${word/@samples/out.csv}
                printf ' --%s' "${word/@image/out.pam}"
            done
            case $kind in image) printf ' -q' ;; *) printf ' --json' ;; esac
            printf ' %s' "$file"
            [ "$count" = 1 ] || printf ' second-%s' "$file"
            case $kind,$file in image,*.pfm) echo ' out.pfm' ;; image,*) echo ' out.png' ;; *) echo ;; esac
        done
    done < <("$build/tests/list_cases")
}

# Print a digest per case, "-" for one that the program rejects.
run_column() { # NUMBER PART
    local arguments
    mkdir "$work/$1-$2" && cd "$work/$1-$2" || return
    ln -s ../*.* .
    while read -r arguments; do
        rm -f out.*
        # shellcheck disable=SC2086 # words
        if ${programs[$1]} $arguments ${options[$1]} >result 2>message || { [ $? = 1 ] && [ -s result ]; }; then
            sed 's/.*"result": //' result | cat - out.* 2>/dev/null | sha256sum | cut -c 1-16
        elif grep -q 'unreliable\|Assert\|core dumped' message; then
            cat message
        else
            echo -
        fi
    done <"$work/part-$2"
}

make_inputs
cases >"$work/all"
if [ "$cases_wanted" = all ]; then
    cp "$work/all" "$work/cases"
else # spread over the list
    awk -v n="$(wc -l <"$work/all")" -v k="$cases_wanted" 'int((NR - 1) * k / n) != int(NR * k / n)' "$work/all" >"$work/cases"
fi
split -n r/4 -a 1 "$work/cases" "$work/part-" # in turn
for i in "${!names[@]}"; do
    for part in a b c d; do
        run_column "$i" $part >"$work/digests-$i-$part" &
        [ "$(jobs -pr | wc -l)" -lt "$(getconf _NPROCESSORS_ONLN)" ] || wait -n
    done
done
wait
for i in "${!names[@]}"; do paste -d '\n' "$work/digests-$i"-? | sed '/^$/d' >"$work/digests-$i"; done

passed=0 rejected=0
echo "columns: ${names[*]}"
while read -r line; do
    IFS=$'\t' read -r -a digests <<<"${line%%$'\t\t'*}"
    case=${line##*$'\t\t'} differ=''
    for i in "${!digests[@]}"; do
        [ "${digests[i]}" = "${digests[0]}" ] || differ+=" ${names[i]} ${digests[i]}"
    done
    if [ -n "$differ" ]; then
        failed=$((failed + 1))
        echo "FAIL $case: golden ${digests[0]},$differ"
    elif [ "${digests[0]}" = - ]; then
        rejected=$((rejected + 1))
    else
        passed=$((passed + 1))
        echo "${digests[0]}  $case"
    fi
# shellcheck disable=SC2046 # names of files
done < <(paste $(for i in "${!names[@]}"; do echo "$work/digests-$i"; done) | paste - /dev/null "$work/cases")
echo "$rejected cases do not apply to their image; $passed cases have one digest in ${#names[@]} columns"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
