#!/usr/bin/env bash
# Golden-image regression tests: tests/golden.sh BUILD [write].
#
# golden/manifest.txt holds the SHA-256 of the raw pixels (as PAM or PFM) of every filter case on a sample
# picture. Only the golden backend writes it (make golden); all backends of this machine are held to it.
# golden/*.png are a few of the results for human eyes, and must hold the very pixels of their case.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
gpufilter=$build/gpufilter
manifest=golden/manifest.txt
samples=(scene.png page.png gradient16.png cutout.png ramp.pfm)
pictures=( # file, filter, sample, parameters
    "scene-keep-xy.png smooth scene.png keep-brightness axis=xy"
    "cutout-keep-xy.png smooth cutout.png keep-brightness axis=xy radius=7"
    "gradient-keep-y.png smooth gradient16.png keep-brightness axis=y radius=64"
)
passed=0 failed=0 skipped=0

options() { # "radius=3 axis=xy keep-brightness" as options
    local word
    for word in "$@"; do printf ' --%s' "$word"; done
}

digest() { # BACKEND FILTER SAMPLE PARAMETER...
    local backend=$1 filter=$2 sample=$3 format=pam
    shift 3
    [ "${sample##*.}" = pfm ] && format=pfm
    # shellcheck disable=SC2046 # words are options
    "$gpufilter" "$filter" --backend "$backend" --format $format $(options "$@") "samples/$sample" - |
        sha256sum | cut -d ' ' -f 1
}

# Each case on one sample in turn, and the first case of every filter on all of them.
cases() {
    local i=0 filter parameters sample last=
    while IFS=$'\t' read -r filter parameters; do
        if [ "$filter" != "$last" ]; then
            for sample in "${samples[@]}"; do echo "$filter $sample${parameters:+ $parameters}"; done
            last=$filter
        else
            echo "$filter ${samples[i % ${#samples[@]}]}${parameters:+ $parameters}"
        fi
        i=$((i + 1))
    done < <("$build/tests/list_cases")
}

if [ "${2:-}" = write ]; then
    while read -r -a words; do
        sum=$(digest golden "${words[@]}") || exit 1
        echo "$sum  ${words[*]}"
    done < <(cases) >$manifest.new || exit 1
    mv $manifest.new $manifest
    for picture in "${pictures[@]}"; do
        read -r -a words <<<"$picture"
        # shellcheck disable=SC2046
        "$gpufilter" "${words[1]}" --backend golden --force -c 9 $(options "${words[@]:3}") \
            "samples/${words[2]}" "golden/${words[0]}" || exit 1
    done
    echo "wrote $(wc -l <$manifest) digests and ${#pictures[@]} pictures in golden/"
    exit
fi

check() { # WHAT WANT GOT
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: want $2, got $3"
    fi
}

# The manifest covers exactly the cases there are.
check "cases in $manifest" "$(cases)" "$(cut -d ' ' -f 3- $manifest)"

backends=(golden cpu)
if "$gpufilter" smooth --backend cuda --format pfm samples/ramp.pfm - >/dev/null 2>"$build/cuda-reason"; then
    backends+=(cuda)
elif [ -n "${GF_REQUIRE_CUDA:-}" ]; then
    check "a CUDA device" "there" "$(cat "$build/cuda-reason")"
else
    echo "SKIP cuda: no device ($(cat "$build/cuda-reason"))"
    skipped=$(wc -l <$manifest)
fi
for backend in "${backends[@]}"; do
    while read -r want line; do
        read -r -a words <<<"$line"
        check "$backend: $line" "$want" "$(digest "$backend" "${words[@]}")"
    done <$manifest
done

for picture in "${pictures[@]}"; do
    read -r -a words <<<"$picture"
    # enhance with gain 1 gives back the pixels it reads.
    check "golden/${words[0]}" "$(digest golden "${words[@]:1}")" \
        "$("$gpufilter" smooth --stages enhance --gain 1 --format pam "golden/${words[0]}" - |
            sha256sum | cut -d ' ' -f 1)"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
