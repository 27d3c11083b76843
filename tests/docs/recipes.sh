#!/usr/bin/env bash
# The commands in docs/scaling.md: tests/docs/recipes.sh BUILD [list]. Each block runs unchanged in a directory with
# photos/, and again after some of its outputs are deleted; the results must equal those of one plain run. A comment
# before a block (<!-- recipe: WORD, WORD -->) lists its requirements: parallel, slurm, gpu, mpi, hosts; measures: it
# prints results; image: it processes one image.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
. tests/support/slurm.sh
. tests/support/mpi_run.sh
root=$PWD
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
trap 'slurm_stop; rm -rf "$work"' EXIT
cd "$work" || exit
chmod 755 . # clients of munged need access to its socket
ulimit -c 0

# ---- the blocks ------------------------------------------------------------------------------------

mkdir recipes
awk '/^<!-- recipe: .* -->$/ { hint = $0; gsub(/<!-- recipe: | -->|,/, "", hint); next }
    /^```sh$/ { on = 1; file = sprintf("recipes/%02d", ++n); print hint >(file ".hint"); hint = ""; next }
    /^```$/ { on = 0; next }
    on { print >file; next }
    NF { hint = "" }' "$root/docs/scaling.md"
[ "${2:-}" != list ] || { cat recipes/??; exit; } # the commands that are run, for tests/docs/doc_commands.py
found() { [ -s recipes/07 ] && [ "$(ls recipes/?? | wc -l)" -eq "$(grep -c '^```sh' "$root/docs/scaling.md")" ]; }
check "all blocks are found" found

mkdir -p photos/a/deep photos/b
for i in $(seq -w 40); do
    directory=$(echo a b a/deep . | cut -d ' ' -f $((10#$i % 4 + 1)))
    draw --photo $((40 + 10#$i % 5)) 30 "$((10#$i))" "photos/$directory/$i.png" || exit
done
gpufilter smooth -R photos --out-dir want -q || exit
timeless() { sed 's/"backend.*"parameters/"parameters/' "$1"; }
gpufilter hist -R photos --json -q >want.json || exit

# ---- running the blocks ----------------------------------------------------------------------------

run() { timeout -k 5 120 sh -e "$1"; }
whole() { diff -r -x '.*' "$work/want" out; }
block() { # RECIPE: in a separate directory
    rm -rf "$work/here" && mkdir "$work/here" && cd "$work/here" && cp -r "$work/photos" . && run "$1" && whole
}
look() { find out -name '*.png' -printf '%i %T@ %p\n' | sort; }
again() { # RECIPE: only missing outputs are made
    cd "$work/here" && [ -d out ] || return 1
    find out -name '*[27].png' -delete
    look >before
    run "$1" || return 1
    look >after
    [ "$(wc -l <before)" -eq 32 ] && [ -z "$(comm -23 before after)" ] && whole
}
measured() {
    rm -rf "$work/here" && mkdir "$work/here" && cd "$work/here" && cp -r "$work/photos" . && run "$1" &&
        timeless measured.json | sort | cmp - <(timeless "$work/want.json" | sort)
}

# One image, with the MPI program and with the one without MPI, which is called plain here.
image() { # RECIPE
    rm -rf "$work/here" && mkdir -p "$work/here/want" && cd "$work/here" || return 1
    draw --grey --photo 301 203 7 scan.pgm && cp scan.pgm want/ || return 1
    run "$1" && sed 's/^mpirun -n 4 gpufilter/plain/' "$1" >plain.sh && (cd want && run ../plain.sh) &&
        rm plain.sh && diff -r -x want . want
}

# Two fake devices: the real program does the work, and the fake records the requested devices.
mkdir fake
cat >fake/gpufilter <<END
#!/usr/bin/env bash
if [ "\$1" = devices ]; then
    printf 'cpu: some\ncuda 0: a device\ncuda 1: another\n'
    exit
fi
arguments=()
while [ \$# -gt 0 ]; do
    if [ "\$1" = --device ]; then
        echo "\$2" >>"$work/requested"
        shift
    else
        arguments+=("\$1")
    fi
    shift
done
sleep 0.05 # so that both slots get work
exec "$build/gpufilter" "\${arguments[@]}"
END
chmod +x fake/gpufilter
fake_devices() { # RECIPE
    local program=$PATH code
    rm -f "$work/requested"
    PATH=$work/fake:$PATH
    block "$1" && again "$1"
    code=$?
    PATH=$program
    cat "$work/requested"
    # Either all devices at once, or each in its own run.
    [ $code -eq 0 ] && case $(sort -u "$work/requested" | tr '\n' ' ') in 'all ' | '0 1 ') ;; *) false ;; esac
}

export HOME=$work # GNU parallel stores files in HOME
parallel=1 slurm=1 gpu=1 why=
mkdir mpi
ln -s "$build/gpufilter-mpi" mpi/gpufilter
ln -s "$build/gpufilter" mpi/plain
mpi() { # CHECK RECIPE
    local program=$PATH code
    PATH=$work/mpi:$PATH
    "$@"
    code=$?
    PATH=$program
    return $code
}
parallel --version 2>/dev/null | grep '^GNU parallel' >/dev/null || parallel=
gpufilter devices | grep '^cuda [0-9]' >/dev/null || gpu=
if why=$(slurm_missing); then
    slurm=
elif grep -qw slurm recipes/*.hint; then
    check "Slurm starts on one node" slurm_start "$work/slurm"
    [ -n "$(slurm_state)" ] || { slurm= why="Slurm did not start"; }
fi

for recipe in "$work"/recipes/??; do
    name="block $(basename "$recipe") of docs/scaling.md"
    hint=" $(cat "$recipe.hint") "
    case $hint in
    *' parallel '*)
        [ -n "$parallel" ] || { skip 1 "$name: GNU parallel is not installed (Debian package parallel)"; continue; }
        ;;
    *' slurm '*)
        [ -n "$slurm" ] || { skip 1 "$name: $why"; continue; }
        ;;
    *' mpi '*)
        missing=$(mpi_missing "$build") && { skip 1 "$name: $missing"; continue; }
        case $hint in
        *' hosts '*)
            mpi_hosts "$work/agent" || { skip 1 "$name: no permission to set the host name of a process"; continue; }
            ;;
        esac
        ;;
    esac
    case $hint in
    *' image '*) check "$name" mpi image "$recipe" ;;
    *' mpi '*)
        check "$name" mpi block "$recipe"
        check "$name, again" mpi again "$recipe"
        ;;
    *' measures '*) check "$name" measured "$recipe" ;;
    *' gpu '*)
        check "$name, with two fake devices" fake_devices "$recipe"
        if [ -n "$gpu" ]; then
            check "$name" block "$recipe"
            check "$name, again" again "$recipe"
        else
            skip 1 "$name: no GPU here"
        fi
        ;;
    '  ' | ' parallel ' | ' slurm ')
        check "$name" block "$recipe"
        check "$name, again" again "$recipe"
        ;;
    *) check "$name: its requirements are known" false ;;
    esac
done

# ---- the projection ---------------------------------------------------------------------------------

tables() { cmp <(sed -n '/^## Projection/,$p' "$root/docs/scaling.md" | grep '^|') <(python3 -B "$root/bench/scaling.py" | grep '^|'); }
if command -v python3 >/dev/null; then
    check "the projection's model passes its checks" python3 -B "$root/bench/scaling.py" --check
    check "docs/scaling.md has the tables of bench/scaling.py" tables
else
    skip 2 "the projection: no python3"
fi

slurm_stop
left() { ! ps -eo args | grep -F "$work/slurm" | grep -v grep; }
[ -z "${SLURM_CONF:-}" ] || check "no Slurm process is left" left
check_summary
