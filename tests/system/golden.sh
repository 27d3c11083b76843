#!/usr/bin/env bash
# Golden regression tests: tests/system/golden.sh BUILD [write].
#
# golden/manifest.txt holds one SHA-256 for each filter case on a sample image: of the raw pixels (PAM or PFM), or of
# the JSON result with the extracted samples and the mask image. Only the golden backend writes the manifest (make
# golden); all backends of this machine must match it.
# golden/*.png are some of the results as pictures; their pixels must equal those of their case.
set -uo pipefail
cd "$(dirname "$0")/../.."
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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

format_of() { # SAMPLE: print a format that stores its pixels uncompressed
    case $1 in *.pfm) echo pfm ;; *) echo pam ;; esac
}

options() { # SAMPLE PARAMETER...: print "radius=3 axis=xy keep-brightness" as options; files are in $work
    local sample=$1 word
    shift
    for word in "$@"; do
        word=${word/@samples/$work/samples.csv}
        printf ' --%s' "${word/@image/$work/image.$(format_of "$sample")}"
    done
}

# The second image for filters that read two: the first one, smoothed.
second() { # SAMPLE
    local file
    file=$work/second-$1.$(format_of "$1")
    [ -e "$file" ] || "$gpufilter" smooth -q --backend golden -k -a xy "samples/$1" "$file"
    echo "$file"
}

declare -A inputs_of makes # by filter
while IFS=$'\t' read -r filter inputs kind _; do
    inputs_of[$filter]=$inputs makes[$filter]=$kind
done < <("$build/tests/list_cases")

# Print the result of a case as bytes. Fail if the case does not apply to the sample.
make_case() { # BACKEND FILTER SAMPLE PARAMETER...
    local backend=$1 filter=$2 sample=$3 code
    shift 3
    local -a command=("$gpufilter" "$filter" --quiet --backend "$backend")
    # shellcheck disable=SC2207 # words are options
    command+=($(options "$sample" "$@"))
    rm -f "$work"/samples.csv "$work"/image.*
    if [ "${makes[$filter]}" = image ]; then
        "${command[@]}" --format "$(format_of "$sample")" "samples/$sample" -
        return
    fi
    local -a inputs=("samples/$sample")
    [ "${inputs_of[$filter]}" = 1 ] || inputs+=("$(second "$sample")")
    "${command[@]}" --json "${inputs[@]}" >"$work/json"
    code=$?
    [ $code -le 1 ] || return $code # compare exits with 1 when its answer is no
    sed 's/.*"result": //' "$work/json"
    cat "$work"/samples.csv "$work"/image.* 2>/dev/null
    return 0
}

digest() { # BACKEND FILTER SAMPLE PARAMETER...
    make_case "$@" | sha256sum | cut -d ' ' -f 1
}

picture_digest() { # PICTURE
    # enhance with gain 1 returns its input pixels.
    "$gpufilter" smooth --stages enhance --gain 1 --format pam "golden/$1" - | sha256sum | cut -d ' ' -f 1
}

# Each case on the next sample that it applies to; the first case of each filter on all samples. A new filter does not
# move the cases of others. The digests of the cpu backend that this computes are in $work/cpu.
cases() {
    local i=0 filter parameters sample last= try
    while IFS=$'\t' read -r filter _ _ parameters; do
        if [ "$filter" != "$last" ]; then
            for sample in "${samples[@]}"; do echo "$filter $sample${parameters:+ $parameters}"; done
            last=$filter i=0
        else
            for ((try = i; try < i + ${#samples[@]}; try++)); do
                sample=${samples[try % ${#samples[@]}]}
                # shellcheck disable=SC2086 # words are parameters
                make_case cpu "$filter" "$sample" $parameters 2>/dev/null >"$work/made" && break
            done
            echo "$filter $sample${parameters:+ $parameters}"
            echo "$(sha256sum <"$work/made" | cut -d ' ' -f 1)  $filter $sample${parameters:+ $parameters}" >>"$work/cpu"
        fi
        i=$((i + 1))
    done < <("$build/tests/list_cases")
}

if [ "${2:-}" = write ]; then
    all=$(cases)
    while read -r -a words; do
        sum=$(digest golden "${words[@]}") || exit 1
        echo "$sum  ${words[*]}"
    done <<<"$all" >$manifest.new || exit 1
    mv $manifest.new $manifest
    written=0
    for picture in "${pictures[@]}"; do
        read -r -a words <<<"$picture"
        [ "$(digest golden "${words[@]:1}")" != "$(picture_digest "${words[0]}")" ] || continue
        # shellcheck disable=SC2046
        "$gpufilter" "${words[1]}" --backend golden --force -c small $(options "${words[@]:2}") \
            "samples/${words[2]}" "golden/${words[0]}" || exit 1
        written=$((written + 1))
    done
    echo "wrote $(wc -l <$manifest) digests and $written changed pictures in golden/"
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

# The manifest must cover exactly the existing cases.
check "cases in $manifest" "$(cases)" "$(cut -d ' ' -f 3- $manifest)"

backends=(golden cpu)
if "$gpufilter" smooth --backend cuda --format pfm samples/ramp.pfm - >/dev/null 2>"$work/cuda-reason"; then
    backends+=(cuda)
elif [ -n "${GF_REQUIRE_CUDA:-}" ]; then
    check "a CUDA device" "present" "$(cat "$work/cuda-reason")"
else
    skipped=$(wc -l <$manifest)
    echo "SKIP $skipped: no GPU ($(cat "$work/cuda-reason"))"
fi
declare -A known=()
while read -r sum line; do known["cpu: $line"]=$sum; done <"$work/cpu"
for backend in "${backends[@]}"; do
    while read -r want line; do
        read -r -a words <<<"$line"
        check "$backend: $line" "$want" "${known["$backend: $line"]:-$(digest "$backend" "${words[@]}")}"
    done <$manifest
done

for picture in "${pictures[@]}"; do
    read -r -a words <<<"$picture"
    check "golden/${words[0]}" "$(digest golden "${words[@]:1}")" "$(picture_digest "${words[0]}")"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
