# shellcheck shell=bash
# To be sourced by tests of failing outputs: inputs of every kind, and checks of messages and remaining files. `build` must
# be set.
. tests/support/check.sh
export PATH=$build:$PATH LC_ALL=C
cd "$work" || exit
ulimit -c 0
unset GF_REQUIRE_CUDA
sanitized=$(case $build in *san-*) echo yes ;; esac)

draw --photo 300 200 3 in.ppm && draw --photo 1100 700 5 big.ppm || exit
tail -c $((300 * 200)) in.ppm | { printf 'P5\n300 200\n255\n' && cat; } >in.pgm
gpufilter smooth in.ppm in.png -q && gpufilter smooth big.ppm big.png -q
tail -c $((40 * 40 * 4)) big.ppm >in.raw
head -c $((400 * 300 * 3 * 4)) /dev/zero >in3.raw
gpufilter smooth in.ppm want.png -q && gpufilter smooth in.ppm want.ppm -q
input_of() { # KIND: print an input that can be written in this format
    case $1 in pgm) echo in.pgm ;; pfm) echo --raw 40x40:f32 in.raw ;; hdr) echo --raw 400x300x3:f32 in3.raw ;; *) echo in.ppm ;; esac
}

# Check the exit code, that stderr is one line with TEXT, and that the directory `here` contains no new files.
one_line() { # CODE TEXT COMMAND...
    local want=$1 text=$2 code before
    shift 2
    before=$(ls -A here)
    "$@" 2>err
    code=$?
    [ $code -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -e "$text" err && [ "$(ls -A here)" = "$before" ] && return
    echo "exit $code (want $want), here: $(ls -A here | tr '\n' ' ')"
    cat err
    return 1
}
fresh() { rm -rf here && mkdir -m 777 here; }
full='No space left on device'
