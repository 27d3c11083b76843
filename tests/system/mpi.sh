#!/usr/bin/env bash
# Batches on several ranks: tests/system/mpi.sh BUILD. Standard input, errors that end the job, ranks without threads, and
# progress. (transports.sh: same outputs and results as one process.)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
images=100
. tests/support/batch_run.sh
need_ranks
make_slow

# Each rank processes some images. The images take longer than starting a rank.
all_ranks_work() {
    ranks 3 smooth slow/*.pgm -O shared --backend golden --threads 1 --radius 127 --json >record 2>stderr || return 1
    [ "$(wc -l <record)" = 120 ] && [ "$(grep -o '"rank": [0-9]*' record | sort -u | wc -l)" = 3 ] &&
        [ "$(grep -o '"files": \[[^]]*\]' record | sort -u | wc -l)" = 120 ] && summary 120 0 0 stderr ' on 3 ranks'
}
verbose() {
    ranks 2 smooth grey/*.pgm -O verbose --verbose 2>stderr && [ "$(grep -c '^verbose/.* of rank [01], .* out$' stderr)" = "$(ls grey | wc -l)" ]
}

# Only rank 0 receives standard input.
from_input() {
    (cd in && find 0 1 -type f | sort | sed 's|^|in/|') >names
    gpufilter smooth --files-from names -O listed 2>errors
    ranks 3 smooth --files-from - -O listed3 <names 2>errors3
    same listed3 listed && diff <(failures errors) <(failures errors3) || return 1
    gpufilter hist grey/008.pgm - grey/*.pgm --csv <grey/015.pgm >text && ranks 3 hist grey/008.pgm - grey/*.pgm --csv <grey/015.pgm >text3 && cmp text text3
}

fails_fast() {
    ranks 2 smooth in/3/text.png slow/*.pgm -O fast --backend golden --threads 1 --radius 127 --fail-fast 2>stderr
    [ $? -eq 1 ] && [ "$(failures stderr | wc -l)" = 1 ] && grep -q '^[0-9]* done, 1 failed, 0 skipped, [0-9]* not started in ' stderr &&
        [ "$(ls fast | wc -l)" -lt 100 ] && [ "$(count_temporary fast)" = 0 ] || return 1
    # Enough images that other ranks are still busy, even on a loaded machine, when the first one fails.
    ranks 3 hist in/3/text.png slow/{,,,,,,,,,}*.pgm --backend golden --threads 1 --fail-fast --csv 2>stderr >text
    [ $? -eq 1 ] && grep -q ' 1 failed, .* not started in ' stderr
}

dry_run() {
    ranks 3 smooth grey/*.pgm -O dry --dry-run >list 2>stderr && diff list <(for file in grey/*.pgm; do echo "dry/${file#grey/}"; done) &&
        grep -q "^dry run: $(ls grey | wc -l) to do, 0 failed, 0 skipped$" stderr && [ ! -e dry ] || return 1
    ranks 3 smooth "grey/$(ls grey | head -n 1)" alone.pgm --dry-run >list && [ "$(cat list)" = alone.pgm ] && [ ! -e alone.pgm ]
}

chains() { # with two outputs per image
    local steps="median ! write '{stem}-m.pgm' ! gaussian"
    gpufilter run -q grey/*.pgm -O chains -p "$steps" && ranks 3 run grey/*.pgm -O chains3 -p "$steps" 2>stderr &&
        same chains3 chains && [ "$(ls chains | wc -l)" = $((2 * $(ls grey | wc -l))) ]
}

no_backend() {
    ranks 3 smooth grey/*.pgm -O none/at/all --backend cuda --device 77 2>stderr >text
    [ $? -eq 3 ] && [ ! -e none ] && [ ! -s text ] && [ "$(grep -c '^gpufilter: ' stderr)" = 1 ] &&
        grep -q "^gpufilter: rank [012] on $(hostname): cuda: " stderr
}

# One rank cannot start threads. Rank 0 needs a thread for its share: the job ends with the reason, and the outputs
# present are complete. Other ranks process their share in the main thread.
no_thread() { # RANK
    local i code one=()
    for i in 0 1 2; do
        one+=(-n 1)
        [ $i != "$1" ] || one+=(-x "LD_PRELOAD=$work/no_thread.so")
        one+=(gpufilter-mpi smooth slow/*.pgm -O alone --backend golden --radius 127 :)
    done
    rm -rf alone
    timeout 120 mpirun --oversubscribe --bind-to none "${one[@]:0:${#one[@]}-1}" 2>stderr
    code=$?
    if [ "$1" != 0 ]; then
        [ $code -eq 0 ] && summary 120 0 0 stderr ' on 3 ranks' && [ "$(ls alone | wc -l)" = 120 ]
        return
    fi
    [ $code -eq 1 ] && [ "$(failures stderr)" = "gpufilter: rank $1 on $(hostname): smooth: cannot start a thread: Resource temporarily unavailable" ] || return 1
    [ ! -e alone ] || { [ "$(count_temporary alone)" = 0 ] && [ "$(ls alone | wc -l)" -lt 100 ]; }
}
make_no_thread() { # build a library that fails pthread_create for the program's own code
    cat >no_thread.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    Dl_info info;
    if (dladdr((void *)run, &info) && strstr(info.dli_fname, "gpufilter-mpi"))
        return EAGAIN;
    return ((create *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, with);
}
END
    cc -shared -fPIC -o no_thread.so no_thread.c -ldl 2>/dev/null
}

one_error() { # CODE LINE ARGUMENT...: three ranks print one such line; a failed check shows what they printed
    local want=$1 line=$2 code
    shift 2
    ranks 3 "$@" 2>stderr
    code=$?
    echo "exit code $code" && cat stderr
    [ $code -eq "$want" ] && [ "$(grep -c "$line" stderr)" = 1 ]
}
rejected() { # one rank prints the error once
    one_error 2 . smooth grey/*.pgm -O none --name x.pgm && one_error 1 '^gpufilter: ' smooth absent.png -O none --fail-fast
}

# ---- progress --------------------------------------------------------------------------------------

progress() { # start in the background; progress_lines checks the output
    # Each job has its own TMPDIR: an mpirun that ends removes the common directory there, and one that starts may fail.
    mkdir tmp.slowly tmp.quietly
    mkfifo slowly.pgm
    { TMPDIR=$work/tmp.slowly ranks 2 smooth grey/*.pgm slowly.pgm -O slowly 2>slowly.log; echo $? >slowly.code; } &
    mkfifo quietly.pgm
    { TMPDIR=$work/tmp.quietly ranks 2 smooth grey/*.pgm quietly.pgm -O quietly --no-progress 2>quietly.log; echo $? >quietly.code; } &
    (
        exec 8>slowly.pgm 9>quietly.pgm
        sleep 10.5
        cat in/1/001.pgm >&8
        cat in/1/001.pgm >&9
    ) &
}
show_threads() { # of the two jobs: print what the jobs have printed, and where each thread waits
    local thread
    tail -v -n 2 slowly.log quietly.log
    for thread in $(grep -lasE 'pgm.-O.(slowly|quietly)' /proc/[0-9]*/task/*/cmdline); do
        thread=${thread%/cmdline}
        echo "${thread#/proc/} $(cut -c 1-40 "$thread/comm" "$thread/wchan" "$thread/syscall" | tr '\n' ' ')"
    done
}
progress_lines() {
    local count
    count=$(ls grey | wc -l)
    # Not by process number: other processes may have these numbers by now.
    within 60 eval '[ -s slowly.code ] && [ -s quietly.code ]' || show_threads
    [ "$(cat slowly.code quietly.code | tr -d '\n')" = 00 ] && summary $((count + 1)) 0 0 slowly.log && summary $((count + 1)) 0 0 quietly.log &&
        [ "$(grep -cE "^gpufilter: $count of $((count + 1)) files, [0-9.]+ MP/s, [0-9]+:[0-9]+ left\$" slowly.log)" = 1 ] &&
        ! grep -q ' of ' quietly.log
}

progress
check "every rank processes images" all_ranks_work
check "--verbose names the rank" verbose
check "standard input" from_input
check "--fail-fast" fails_fast
check "a dry run" dry_run
check "chains" chains
check "an unavailable backend" no_backend
if grep -q 'fsanitize' "$build/config" || ! make_no_thread; then
    skip 2 "a rank without threads: a sanitizer is on, or there is no cc"
else
    check "rank 0 cannot start threads" no_thread 0
    check "rank 2 cannot start threads" no_thread 2
fi
check "an invalid command is rejected once" rejected
check "progress lines" progress_lines
check_summary
