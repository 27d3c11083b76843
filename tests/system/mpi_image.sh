#!/usr/bin/env bash
# One image on several MPI ranks: tests/system/mpi_image.sh BUILD. Output, files and exit code must equal those of the
# plain program for any number of ranks. Errors are printed once. If a rank is killed, the job ends and leaves no
# temporary files.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
. tests/support/mpi_run.sh
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
if why=$(mpi_missing "$build"); then
    skip 1 "ranks of MPI: $why"
    check_summary
    exit
fi
export shared=$work/shared
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work" "$shared"' EXIT
cd "$work" || exit
ulimit -c 0

# If mpirun does not run for 2 s when ranks end, on a loaded machine, PMIx ends without it, and mpirun reports a rank that
# "exited improperly" with the code 1. The ranks' own code counts then.
mpi() { # RANKS ARGUMENTS...: drop the messages of mpirun itself
    local ranks=$1 code
    shift
    rm -f "$work/codes"
    # shellcheck disable=SC2016
    timeout -k 5 60 mpirun -n "$ranks" sh -c 'gpufilter-mpi "$@"; code=$?; echo $code >>"$0"; exit $code' \
        "$work/codes" "$@" 2>mpi.log
    code=$?
    ! grep -q 'exiting improperly' mpi.log || code=$(sort -u "$work/codes")
    grep '^gpufilter: ' mpi.log >&2
    return "$code"
}

# ---- same results as the plain program --------------------------------------------------------------------------------

# Make finite floats of many magnitudes and both signs from the bytes of an image.
floats() { # NAME WIDTH HEIGHT FILE
    printf '%s\n%d %d\n-1\n' "$1" "$2" "$3"
    local bytes=$(($2 * $3))
    [ "$1" = Pf ] || bytes=$((3 * bytes))
    printf '%b' "$(tail -c $bytes "$4" | od -An -v -tu1 -w1 | awk '{
        m = ($1 * 7919 + NR * 104729) % 8388608; e = 118 + $1 % 11; s = NR % 13 == 0
        printf "\\0%03o\\0%03o\\0%03o\\0%03o", m % 256, int(m / 256) % 256, int(m / 65536) + e % 2 * 128,
            int(e / 2) + s * 128 }')"
}
draw --photo 41 31 7 a8.ppm
draw --16 --photo 41 31 7 a16.png
gpufilter smooth --gain 1 --weight 0 a16.png a16.ppm
floats PF 41 31 a8.ppm >a32.pfm
for a in a8.ppm a16.ppm a32.pfm; do
    gpufilter smooth --radius 1 $a b${a#a}
done
tail -c $((41 * 31 * 3 * 2)) a16.ppm >a.raw
tail -c $((41 * 31 * 3 * 2)) b16.ppm >b.raw

same() { # RANKS ARGUMENTS...: run in a separate directory; the inputs are in its parent
    local ranks=$1
    shift
    rm -rf one many && mkdir one many
    (cd one && gpufilter "$@" --backend cpu >stdout 2>stderr; echo $? >code)
    (cd many && mpi "$ranks" "$@" --backend cpu >stdout 2>stderr; echo $? >code; mv mpi.log ..)
    diff -r one many || { cat mpi.log; return 1; }
}
ranks=0
some() { # ARGUMENTS...: run on 2, 3 or 4 ranks
    ranks=$((ranks % 3 + 1))
    check "$((ranks + 1)) ranks: $*" same $((ranks + 1)) "$@"
}
turns=0 step=$(by_tier 3 3 1)
turn() { # ARGUMENTS...: outside of `make test-long`, each of 20 commands runs for one of three kinds, as of 3 for raw shapes
    turns=$((turns + 1))
    [ $((turns % step)) != 0 ] || some "$@"
}
for kind in 8.ppm 16.ppm 32.pfm; do
    end=${kind#*.}
    a=../a$kind b=../b$kind
    for n in $(by_tier 2 3 "1 2 3 4"); do
        check "$n ranks: smooth $kind" same $n smooth --axis xy --radius 9 $a out.$end
        check "$n ranks: hist $kind" same $n hist --csv --bins 300 $a
        check "$n ranks: hist --extract $kind" same $n hist --channel g --bins 8 -x 3 -o samples.csv $a
        check "$n ranks: axis-sum x $kind" same $n axis-sum --csv $a
        check "$n ranks: axis-sum y $kind" same $n axis-sum --csv --axis y $a
        check "$n ranks: dot $kind" same $n dot --csv $a $b
    done
    turn smooth --radius 127 $a out.$end
    turn smooth --axis y --radius 127 --rows-per-strip 1 $a out.$end
    turn normalize $a out.$end
    turn compare $a $b
    turn compare $a $a
    turn smooth --crop 3,2,30,25 --axis y $a out.raw
    turn normalize --crop 3,2,30,25 $a out.raw
    turn hist --bins 9 --crop 3,30,30,1 -x 3 -o samples.csv $a
    for depth in 8 16 f32; do
        turn smooth --depth $depth --axis y $a out.raw
        turn normalize --depth $depth $a out.raw
    done
    turn hist --channel all --bins 5 -x all -o samples.npy -m mask.raw $a
    turn hist --bins 9 -x 4 -o samples.json -q $a
    turn hist --bins 9 -x 2,4 -o samples.csv --per-row --csv $a
    turn hist --bins 9 -x 2,4 -o samples.json -m mask.png $a
    turn hist --bins 9 --statistics --csv $a
    turn hist --channel all --bins 3 --statistics --per-row $a
done
for shape in 41x31x3:u16be 123x31:u16le 31x41x3:u16 1x3813:u16be 3813x1:u16be 41x30x3:u16be+246; do
    turns=$((turns + 1))
    turn smooth --axis y --raw $shape ../a.raw out.raw
    turn axis-sum --csv --axis y --raw $shape ../a.raw
    turn dot --csv --raw $shape ../a.raw ../b.raw
done
tail -c $((41 * 31 * 3 * 4)) a32.pfm >floats.raw
some axis-sum --csv --axis y --raw 2x1906:f32+4 ../floats.raw
some axis-sum --csv --axis y --raw 3x1271:f32be ../floats.raw
some normalize --raw 123x31:f32le ../floats.raw out.pfm
{ printf 'P4\n205 93\n' && tail -c $((26 * 93)) a8.ppm; } >bits.pbm
some smooth --axis y ../bits.pbm out.pgm
{ printf 'P6\n41 31\n127\n' && tail -c $((41 * 31 * 3)) a8.ppm | LC_ALL=C tr '\200-\377' '\0-\177'; } >low.ppm
some smooth --axis y ../low.ppm out.pam
some dot --csv ../low.ppm ../a8.ppm
gpufilter smooth -q a16.ppm a16.npy
some smooth --axis xy --radius 9 ../a16.npy out.npy
some hist --csv --bins 300 -x 7 -o samples.npy -m mask.npy ../a16.npy
some normalize --raw 123x31:f32le ../floats.raw out.npy
# Two pages of one strip, the second of 2x2 pixels: ranks share one page, and rank 0 writes both.
tag() { printf "\\$1\1\4\0\1\0\0\0\\$2\0\0\0"; }
page() { # WIDTH HEIGHT DATA BYTES NEXT
    printf '\7\0'
    tag 0 "$1" && tag 1 "$2" && tag 2 10 && tag 6 1 && tag 21 "$3" && tag 26 "$2" && tag 27 "$4" && printf "\\$5\0\0\0"
}
{ printf 'II*\0\10\0\0\0' && page 5 11 274 55 142 && page 2 2 274 4 0 && head -c 60 a8.ppm; } >pages.tif
some smooth --page 1 ../pages.tif out.pgm
some smooth --page all ../pages.tif out.tif
printf 'P5\n1 1\n255\n7' >pixel.pgm
some smooth ../pixel.pgm out.pgm
some normalize ../pixel.pgm out.pgm
some axis-sum --axis y --csv ../pixel.pgm
some hist -x 7 -o samples.npy --csv ../pixel.pgm

# Ranks with different numbers of threads write one file in memory; also from the bottom row to the top.
shared=$(mktemp -d /dev/shm/gpufilter-XXXXXX 2>/dev/null) || shared=$work/shared
draw --photo 1300 1001 3 large.ppm
bytes() { "$@" smooth ../large.ppm out.ppm --force --json | grep -o '"bytes_[a-z]*": [0-9]*'; }
bytes_as_by_one() { mkdir -p counted && (cd counted && bytes gpufilter >one && bytes mpi 3 >many && cmp one many); }
check "counts of bytes read and written" bytes_as_by_one
tail -c $((1300 * 1001 * 3)) large.ppm >large.raw
mixed() { # FORMAT ARGUMENTS...
    local format=$1
    shift
    gpufilter "$@" "large.$format" --force -q || return 1
    # shellcheck disable=SC2016
    mpirun -n 3 sh -c 'exec gpufilter-mpi "$@" --threads $((1 + 3 * ((OMPI_COMM_WORLD_RANK + 1) % 2)))' sh "$@" \
        "$shared/large.$format" --force -q && cmp "large.$format" "$shared/large.$format"
}
check "ranks with different threads" mixed pam smooth --axis y --radius 20 large.ppm
check "ranks with different threads, bottom row first" mixed pfm normalize --raw 325x3003:f32 large.raw

# ---- errors are printed once, and all ranks exit with their code ------------------------------------------------------

some smooth ../missing.ppm out.ppm
some smooth ../a8.ppm
some smooth --radius 128 ../a8.ppm out.ppm
some smooth ../a8.ppm none/out.ppm
some smooth ../a8.ppm ../b8.ppm
some smooth ../a8.ppm ../one
some smooth ../a8.ppm out.ppm --max-memory 1
some hist -x 3 -o out.pam -m out.pam --sample-format csv ../a8.ppm
some compare ../a8.ppm ../a16.ppm
sed 's/^127$/100/' low.ppm >damaged.ppm
some hist ../damaged.ppm
some smooth --help
some axis-sum --max-memory 1 --axis y ../a32.pfm
once() { # CODE LINE ARGUMENTS...: commands that are not filters
    local code=$1 line=$2
    shift 2
    mpi 3 "$@" >out.log 2>err.log
    [ $? -eq "$code" ] && [ "$(cat out.log err.log | grep -c "$line")" -eq 1 ]
}
check "the version, once" once 0 '^gpufilter [0-9]' --version
check "help, once" once 0 '^Usage: ' help
check "no such command, once" once 2 'no such filter' nonsense
check "info, once" once 0 'a8.ppm: ' info a8.ppm
unlike() { # one rank has another command line
    timeout -k 5 30 mpirun "$@" >err.log 2>&1
    [ $? -eq 2 ] && [ "$(grep -c '^gpufilter: .*must be an integer' err.log)" -eq 1 ]
}
valid=(gpufilter-mpi smooth a8.ppm unlike.ppm) invalid=(gpufilter-mpi smooth --radius 128 a8.ppm unlike.ppm)
check "the command line of rank 0 is invalid" unlike -n 1 "${invalid[@]}" : -n 2 "${valid[@]}"
check "the command line of the last rank is invalid" unlike -n 2 "${valid[@]}" : -n 1 "${invalid[@]}"

# ---- standard input and output; waiting ranks -------------------------------------------------------------------------

standard() { # FILTER: first a file as each rank's own standard input, then the standard input that mpirun passes to rank 0
    gpufilter "$1" a8.ppm want.ppm --force -q
    # shellcheck disable=SC2016
    mpirun -n 3 sh -c 'exec gpufilter-mpi "$0" - got.ppm --force <a8.ppm' "$1" && cmp want.ppm got.ppm && rm got.ppm &&
        mpi 3 "$1" - got.ppm <a8.ppm && cmp want.ppm got.ppm && rm got.ppm
}
check "standard input: smooth" standard smooth
check "standard input: normalize" standard normalize
samples_out() {
    mpi 3 hist -x 90 -o - a8.ppm >got.csv && gpufilter hist -x 90 -o - a8.ppm 2>/dev/null >want.csv && cmp want.csv got.csv
}
check "samples to standard output" samples_out
idle() { # rank 1 waits for rank 0, which waits for its input
    rm -f cpu.*
    # shellcheck disable=SC2016
    (sleep 3 && cat a8.ppm) | mpirun -n 2 bash -c 'TIMEFORMAT="%3U %3S" && { time gpufilter-mpi smooth - late.ppm; } \
        2>cpu.$OMPI_COMM_WORLD_RANK' && cat cpu.1 && awk '{exit $1 + $2 > 1}' cpu.1
}
check "a waiting rank uses no CPU time" idle

# A file without write permission is replaced.
chmod 755 .
read_only() {
    mkdir -m 777 open && cp a8.ppm b8.ppm open && cd open || return 1
    other env HOME="$PWD" TMPDIR="$PWD" sh -c 'cp a8.ppm kept.ppm && chmod 444 kept.ppm && mpirun -n 2 gpufilter-mpi smooth --radius 1 a8.ppm kept.ppm -f' &&
        cmp b8.ppm kept.ppm && [ "$(stat -c %a kept.ppm)" = 444 ]
}
if other test -x "$build/gpufilter-mpi" 2>/dev/null; then
    check "a file without write permission is replaced" eval '(read_only)'
else
    skip 1 "a file without write permission: cannot switch to another user, or it cannot access $build"
fi

# ---- two hosts ----------------------------------------------------------------------------------------------------------

over_hosts() { # ARGUMENTS...: two ranks on each host
    rm -rf one many && mkdir one many
    (cd one && gpufilter "$@" --backend cpu >stdout) && (
        cd many && mpi_hosts "$work/agent" &&
            timeout -k 5 60 mpirun --host here:2,there:2 gpufilter-mpi "$@" --backend cpu >stdout 2>../mpi.log
    ) && diff -r one many
}
if mpi_hosts "$work/agent"; then
    check "two hosts: smooth" over_hosts smooth --axis xy --radius 9 ../a16.ppm out.ppm
    check "two hosts: normalize" over_hosts normalize ../a32.pfm out.pfm
    check "two hosts: axis-sum of columns" over_hosts axis-sum --axis y --csv ../a32.pfm
    check "two hosts: hist" over_hosts hist --bins 8 --extract 2,3 --out out.csv ../a8.ppm
else
    skip 4 "two hosts: no permission to set the host name of a process"
fi
export OMPI_MCA_btl=self,vader

# ---- killed ranks -------------------------------------------------------------------------------------------------------

# A sparse input that takes long to compute.
truncate -s 6000000000 zeros.raw
mkdir dying
alive() { for pid in $(cat pid.*); do kill -0 "$pid" 2>/dev/null && return 0; done; return 1; }
dies() { # TARGET SIGNAL: rank 0 or 2, or mpirun
    local program pid code started under_way
    rm -f pid.* dying/.*.tmp
    echo old >dying/out.raw
    # shellcheck disable=SC2016
    env --default-signal mpirun -n 3 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec gpufilter-mpi "$@"' sh smooth \
        --axis xy --radius 100 --threads 1 --backend cpu --raw 60000x100000:u8 zeros.raw dying/out.raw --force >dying.log 2>&1 &
    program=$!
    within 20 eval '[ "$(find dying -name ".*.tmp" -size +64k | wc -l)" -eq 1 ]' && under_way=true || under_way=false
    pid=$program
    [ "$1" = mpirun ] || pid=$(cat pid."$1")
    started=$SECONDS
    kill -s "$2" "$pid"
    wait $program
    code=$?
    cat dying.log
    within 10 eval '! alive'
    echo "exit code $code, $((SECONDS - started)) s"
    ls -A dying
    $under_way && ! alive && [ $code -ne 0 ] && [ $((SECONDS - started)) -lt 15 ] && [ "$(cat dying/out.raw)" = old ] &&
        { [ "$2" = KILL ] && [ "$1" = mpirun ] || [ "$(ls -A dying)" = out.raw ]; }
}
for target in 0 2 mpirun; do
    check "KILL to $target" dies $target KILL
done
check "TERM to 0" dies 0 TERM
check "TERM to mpirun" dies mpirun TERM
check "INT to mpirun" dies mpirun INT
check_summary
