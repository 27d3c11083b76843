#!/usr/bin/env bash
# A batch of valid files with hostile files of every kind among them: tests/long/hostile_batch.sh BUILD [FILES
# [HOSTILE]]. Default: 300 files, 40 of them hostile; full size: 10000 and 100 (`make hostile-batch`), preferably with
# SAN=address,undefined.
# Each hostile file must be reported in one line; all other outputs must be unaffected, and no other files be left.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
files=${2:-$(by_tier 300 300 10000)} hostile=${3:-$(by_tier 40 40 100)}
export PATH=$build:$PATH LC_ALL=C
cd "$work" || exit
ulimit -c 0

# ---- valid files: a few of each kind, repeated ----------------------------------------------------------------------
mkdir seeds clean mixed
for kind in ppm pgm pam png bmp tga jpg; do
    for n in 1 2 3; do
        depth=3 && [ $kind = pgm ] && depth=1
        { printf 'P%d\n%d %d\n255\n' $((depth == 1 ? 5 : 6)) $((20 + 13 * n)) $((30 + n)) &&
            head -c $(((20 + 13 * n) * (30 + n) * depth)) <(yes "picture $n of $kind, "); } >from.pnm
        gpufilter smooth --stages enhance --gain 1 from.pnm seeds/$n.$kind || exit 1
    done
done
{ printf 'PF\n20 10\n-1\n' && head -c 2400 /dev/zero; } >from.pfm
gpufilter smooth --stages enhance --gain 1 from.pfm seeds/1.hdr
printf 'GIF89a\1\0\1\0\200\0\0\12\24\36\377\377\377,\0\0\0\0\1\0\1\0\0\2\2D\1\0;' >seeds/1.gif
printf '8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\20\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\7\10\11\12\13\14' >seeds/1.psd
kinds=(seeds/*[!r]) # no .hdr: .pam cannot store floats
for ((i = 0; i < files - hostile; i++)); do
    seed=${kinds[i % ${#kinds[@]}]}
    name=$(printf '%03d/valid%05d.%s' $((i % 40)) "$i" "${seed##*.}")
    mkdir -p "mixed/${name%/*}"
    ln "$seed" "mixed/$name" 2>/dev/null || cp "$seed" "mixed/$name"
done
cp -al mixed/. clean

# ---- hostile files of many kinds ------------------------------------------------------------------------------------
be() { # BYTES NUMBER: big-endian
    local i
    for ((i = 8 * ($1 - 1); i >= 0; i -= 8)); do printf '%b' "\\x$(printf %02x $(($2 >> i & 255)))"; done
}
le() { # BYTES NUMBER
    local i
    for ((i = 0; i < 8 * $1; i += 8)); do printf '%b' "\\x$(printf %02x $(($2 >> i & 255)))"; done
}
noise() {
    local i text=
    for ((i = 0; i < $1; i++)); do text+=\\x$(printf %02x $((RANDOM & 255))); done
    printf '%b' "$text"
}
jpeg_claim() { # WIDTH HEIGHT
    printf '\377\330\377\300\0\21\10' && be 2 "$2" && be 2 "$1" && printf '\3\1\21\0\2\21\0\3\21\0' && noise 200
}
gif_claim() { printf 'GIF89a' && le 2 "$1" && le 2 "$2" && printf '\200\0\0\12\24\36\377\377\377,\0\0\0\0' && noise 30; }
psd_claim() { printf '8BPS\0\1\0\0\0\0\0\0\0\3' && be 4 "$1" && be 4 "$2" && printf '\0\10\0\3' && be 4 $((1 << 31)) && noise 9; }
bmp_claim() { printf 'BM' && le 4 99 && le 4 0 && le 4 54 && le 4 40 && le 4 "$1" && le 4 "$2" && le 2 1 && le 2 24 &&
    le 4 0 && le 4 0 && le 4 0 && le 4 0 && le 4 0 && le 4 0; }
tga_claim() { printf '\0\0\12\0\0\0\0\0\0\0\0\0' && le 2 "$1" && le 2 "$2" && printf '\30\0' && noise 40; }
hdr_claim() { printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %s +X %s\n' "$2" "$1" && noise 20; }
png_claim() { head -c 16 seeds/1.png && be 4 "$1" && be 4 "$2" && tail -c +25 seeds/1.png; }
cut() { head -c $(($(stat -c %s "$2") * $1 / 100)) "$2"; }
kinds_of_damage=(
    "empty png" "empty jpg" "empty xyz" "text jpg" "text tga" "text png"
    "directory png" "directory jpg" "loop png" "gone bmp" "closed png" "noise hdr"
    "noise png" "noise jpg" "noise tga" "noise gif" "noise bmp" "noise psd"
    "cut png" "cut jpg" "cut bmp" "cut tga" "cut hdr" "cut psd" "cut ppm" "cut gif"
    "claim png" "claim jpg" "claim bmp" "claim tga" "claim gif" "claim psd" "claim hdr" "claim ppm"
    "large jpg" "large gif" "sum png" "tables jpg" "channels psd" "packed psd"
)
make_hostile() { # KIND EXTENSION PATH
    local seed=seeds/1.$2
    case $1 in
    empty) : >"$3" ;;
    text) echo "this is a text and no picture at all" >"$3" ;;
    directory) mkdir "$3" ;;
    loop) ln -s "$(basename "$3")" "$3" ;;
    gone) ln -s nowhere.bmp "$3" ;;
    closed) [ "$(id -u)" -eq 0 ] && ln -s /proc/self/mem "$3" || { cp "$seed" "$3" && chmod 000 "$3"; } ;;
    noise) { [ $2 = tga ] && noise 300 || { head -c 8 "$seed" && noise 300; }; } >"$3" ;;
    cut) cut $((10 + RANDOM % 70)) "$seed" >"$3" ;;
    claim) # sizes beyond any limit
        case $2 in
        png) png_claim 2147483647 2147483647 ;;
        jpg) jpeg_claim 65500 65500 ;;
        bmp) bmp_claim 2000000 2000000 ;;
        tga) tga_claim 65535 65535 ;;
        gif) gif_claim 65535 65535 ;;
        psd) psd_claim 30000 60000 ;;
        hdr) hdr_claim 1000000 1000000 ;;
        ppm) printf 'P6\n99999999999 99999999999\n255\n' ;;
        esac >"$3"
        ;;
    large) { [ $2 = jpg ] && jpeg_claim 20000 20000 || gif_claim 20000 20000; } >"$3" ;; # sizes within the limits
    sum) { cut 50 "$seed" && printf x && tail -c +$(($(stat -c %s "$seed") / 2 + 2)) "$seed"; } >"$3" ;;
    tables) { head -c 4 "$seed" && jpeg_claim 8 8 | head -c 21 && printf '\377\304\2\0\0' && head -c 600 <(yes); } >"$3" ;;
    channels) { head -c 12 "$seed" && be 2 4 && tail -c +15 "$seed"; } >"$3" ;;
    packed) { head -c 38 "$seed" && be 2 1 && tail -c +41 "$seed"; } >"$3" ;;
    esac
}
RANDOM=5
for ((i = 0; i < hostile; i++)); do
    read -r kind extension <<<"${kinds_of_damage[i % ${#kinds_of_damage[@]}]}"
    directory=$(printf 'mixed/%03d' $((i % 40)))
    mkdir -p "$directory"
    make_hostile $kind $extension "$directory/hostile$(printf %05d $i)-$kind.$extension"
done

# ---- the batch ------------------------------------------------------------------------------------------------------
find clean -type f | sort >clean.list
{ find mixed \( -type f -o -type l \); find mixed -mindepth 2 -type d; } | sort >mixed.list
gpufilter smooth -k --files-from clean.list --out-dir want --name '{stem}{ext}.pam' -q || exit 1
[ -x /usr/bin/time ] && timed=(/usr/bin/time -f '%M' -o peak)
begin=$SECONDS
${timed[@]+"${timed[@]}"} gpufilter smooth -k --files-from mixed.list --out-dir got --name '{stem}{ext}.pam' --keep-going 2>stderr
code=$?
seconds=$((SECONDS - begin))
found_hostile=$(grep -c . <(grep '/hostile' mixed.list))

exact() { [ "$found_hostile" -eq "$hostile" ] && [ "$(wc -l <clean.list)" -eq $((files - hostile)) ]; }
# An error is one line with the file, the cause and the remedy; each file appears in one line only.
each_reported() {
    [ "$(grep -c '^gpufilter: mixed/[^ ]*/hostile[^ ]*: .' stderr)" -eq "$hostile" ] &&
        [ "$(grep -o '^gpufilter: mixed/[^ :]*' stderr | sort -u | wc -l)" -eq "$hostile" ] &&
        [ "$(wc -l <stderr)" -eq $((hostile + 1)) ]
}
summary_matches() { grep -q "^$((files - hostile)) done, $hostile failed, 0 skipped in " stderr; }
same() { diff -r want got; }
tidy() { [ -z "$(find got -name '.*.tmp')" ] && [ "$(find got -name '*.pam' | wc -l)" -eq $((files - hostile)) ]; }
alone() { [ -z "$(ps -o pid= --ppid $$ | while read -r pid; do ps -o comm= -p "$pid"; done | grep gpufilter)" ]; }
clean_runs() { ! grep -q 'Sanitizer\|runtime error' stderr; }
check "the requested numbers of files" exact
check "$hostile of $files fail: exit code 1" [ $code -eq 1 ]
check "each is reported in one line" each_reported
check "the summary counts them" summary_matches
check "the other outputs equal those without hostile files" same
check "no temporary files and no unexpected outputs" tidy
check "no process is left" alone
check "no sanitizer reports" clean_runs
if [ ${#timed[@]} -gt 0 ]; then
    peak=$(tail -n 1 peak)
    # Sanitizers keep freed memory for a while, and use shadow memory.
    limit=$((256 * 1024)) && grep -q fsanitize "$build/config" && limit=$((3 * 1024 * 1024))
    check "peak memory: $peak KiB" [ "$peak" -lt $limit ]
    echo "$files files, $hostile hostile: $seconds s, peak $peak KiB"
else
    skip 1 "peak memory: no /usr/bin/time"
fi
# Each hostile file alone must also be rejected with one line and exit code 1, in little memory.
each_alone() {
    while read -r file; do
        ${timed[@]+"${timed[@]}"} timeout 60 gpufilter smooth "$file" one.pam >out 2>errors
        [ $? -eq 1 ] && [ "$(wc -l <errors)" -eq 1 ] && [ ! -e one.pam ] && [ ! -s out ] || { echo "$file"; cat errors; return 1; }
        [ ${#timed[@]} -eq 0 ] || grep -q fsanitize "$build/config" || [ "$(tail -n 1 peak)" -lt 65536 ] ||
            { echo "$file: $(cat peak) KiB"; return 1; }
    done < <(grep '/hostile' mixed.list | head -n 40)
}
check "each alone: one line, exit code 1, below 64 MiB" each_alone
[ $failed -eq 0 ] || head -n 60 stderr
check_summary
