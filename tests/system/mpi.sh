#!/usr/bin/env bash
# Batches on several ranks: tests/system/mpi.sh BUILD. Files, standard output, counts and exit codes must equal those
# of one process, also for resumed runs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/mpi_batch.sh

# ---- batches ---------------------------------------------------------------------------------------

as_one() { # RANKS
    mpi "$1" smooth -R in --out-dir "out$1" --radius 3 2>"stderr$1"
    [ $? -eq 1 ] && same want "out$1" && [ "$(litter "out$1")" = 0 ] &&
        diff <(failures want.log) <(failures "stderr$1") && [ "$(wc -l <"stderr$1")" = "$(wc -l <want.log)" ] &&
        summary "$made" "$failed_files" 0 "stderr$1" "$([ "$1" = 1 ] || echo " on $1 ranks")"
}

# Results are printed in the order of the files, for any number of ranks.
measured() { # RANKS
    local how
    for how in "hist -R in --bins 5" "hist -R in --bins 4 --csv" "axis-sum -R in --axis y --csv" "axis-sum -R same" \
        "hist -R in --quiet"; do
        # shellcheck disable=SC2086 # words
        plain $how >text 2>errors
        code=$?
        # shellcheck disable=SC2086
        mpi "$1" $how >text2 2>errors2
        [ $? -eq $code ] && cmp text text2 && diff <(grep '^gpufilter: ' errors) <(grep '^gpufilter: ' errors2) || return 1
    done
    plain axis-sum -R in --json 2>/dev/null | untimed >text
    mpi "$1" axis-sum -R in --json 2>/dev/null >record
    cmp text <(untimed <record) && [ "$(wc -l <record)" = $((made + failed_files)) ] && [ "$(grep -c '"error": ' record)" = "$failed_files" ]
}

# Each rank processes some images. The images take longer than starting a rank.
all_ranks_work() {
    mpi 3 smooth slow/*.pgm -O shared --backend golden --threads 1 --radius 127 --json >record 2>stderr || return 1
    [ "$(wc -l <record)" = 120 ] && [ "$(grep -o '"rank": [0-9]*' record | sort -u | wc -l)" = 3 ] &&
        [ "$(grep -o '"files": \[[^]]*\]' record | sort -u | wc -l)" = 120 ] && summary 120 0 0 stderr ' on 3 ranks'
}
verbose() {
    mpi 2 smooth same/*.pgm -O verbose --verbose 2>stderr && [ "$(grep -c '^verbose/.* of rank [01], .* out$' stderr)" = "$(ls same | wc -l)" ]
}

# Only rank 0 receives standard input.
from_input() {
    (cd in && find 0 1 -type f | sort | sed 's|^|in/|') >names
    plain smooth --files-from names -O listed 2>errors
    mpi 3 smooth --files-from - -O listed3 <names 2>errors3
    same listed listed3 && diff <(failures errors) <(failures errors3) || return 1
    plain hist same/12.pgm - same/*.pgm --csv <same/24.pgm >text && mpi 3 hist same/12.pgm - same/*.pgm --csv <same/24.pgm >text3 && cmp text text3
}

resumed() {
    cp -a out3 some && find some -name '*[13].p?m' -delete && mpi 3 smooth -R in --out-dir some --radius 3 --resume 2>stderr
    [ $? -eq 1 ] && same want some || return 1
    local missing
    missing=$(find want -name '*[13].p?m' | wc -l)
    summary "$missing" "$failed_files" $((made - missing)) stderr ' on 3 ranks' || return 1
    plain smooth -R in --out-dir some --radius 3 --resume 2>stderr
    summary 0 "$failed_files" "$made" stderr || return 1
    # Outputs made with other settings count as finished; only --force makes them again.
    mpi 2 smooth -R in --out-dir some --radius 2 --resume 2>stderr
    summary 0 "$failed_files" "$made" stderr
}

# An existing file is kept, regardless of the rank that would write it.
kept() {
    mkdir kept && echo mine >kept/12.pgm
    mpi 3 smooth -R same -O kept 2>stderr
    [ $? -eq 1 ] && [ "$(cat kept/12.pgm)" = mine ] && [ "$(failures stderr | wc -l)" = 1 ] && summary $(($(ls same | wc -l) - 1)) 1 0 stderr
}

fails_fast() {
    mpi 2 smooth in/3/text.png slow/*.pgm -O fast --backend golden --threads 1 --radius 127 --fail-fast 2>stderr
    [ $? -eq 1 ] && [ "$(failures stderr | wc -l)" = 1 ] && grep -q '^[0-9]* done, 1 failed, 0 skipped, [0-9]* not started in ' stderr &&
        [ "$(ls fast | wc -l)" -lt 100 ] && [ "$(litter fast)" = 0 ] || return 1
    # Enough images that other ranks are still busy, even on a loaded machine, when the first one fails.
    mpi 3 hist in/3/text.png slow/{,,,,,,,,,}*.pgm --backend golden --threads 1 --fail-fast --csv 2>stderr >text
    [ $? -eq 1 ] && grep -q ' 1 failed, .* not started in ' stderr
}

dry_run() {
    mpi 3 smooth same/*.pgm -O dry --dry-run >list 2>stderr && diff list <(for file in same/*.pgm; do echo "dry/${file#same/}"; done) &&
        grep -q "^dry run: $(ls same | wc -l) to do, 0 failed, 0 skipped$" stderr && [ ! -e dry ] || return 1
    mpi 3 smooth "same/$(ls same | head -n 1)" alone.pgm --dry-run >list && [ "$(cat list)" = alone.pgm ] && [ ! -e alone.pgm ]
}

no_backend() {
    mpi 3 smooth same/*.pgm -O none/at/all --backend cuda --device 77 2>stderr >text
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
        one+=(ranked smooth slow/*.pgm -O alone --backend golden --radius 127 :)
    done
    rm -rf alone
    timeout 120 mpirun --oversubscribe --bind-to none "${one[@]:0:${#one[@]}-1}" 2>stderr
    code=$?
    if [ "$1" != 0 ]; then
        [ $code -eq 0 ] && summary 120 0 0 stderr ' on 3 ranks' && [ "$(ls alone | wc -l)" = 120 ]
        return
    fi
    [ $code -eq 1 ] && [ "$(failures stderr)" = "gpufilter: rank $1 on $(hostname): smooth: cannot start a thread: Resource temporarily unavailable" ] || return 1
    [ ! -e alone ] || { [ "$(litter alone)" = 0 ] && [ "$(ls alone | wc -l)" -lt 100 ]; }
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
    if (dladdr((void *)run, &info) && strstr(info.dli_fname, "ranked"))
        return EAGAIN;
    return ((create *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, with);
}
END
    cc -shared -fPIC -o no_thread.so no_thread.c -ldl 2>/dev/null
}

one_error() { # CODE LINE ARGUMENT...: three ranks print one such line; a failed check shows what they printed
    local want=$1 line=$2 code
    shift 2
    mpi 3 "$@" 2>stderr
    code=$?
    echo "exit code $code" && cat stderr
    [ $code -eq "$want" ] && [ "$(grep -c "$line" stderr)" = 1 ]
}
rejected() { # one rank prints the error once
    one_error 2 . smooth same/*.pgm -O none --name x.pgm && one_error 1 '^gpufilter: ' smooth absent.png -O none --fail-fast
}

# ---- progress --------------------------------------------------------------------------------------

progress() { # start in the background; progress_lines checks the output
    # Each job has its own TMPDIR: an mpirun that ends removes the common directory there, and one that starts may fail.
    mkdir tmp.slowly tmp.quietly
    mkfifo slowly.pgm
    { TMPDIR=$work/tmp.slowly mpi 2 smooth same/*.pgm slowly.pgm -O slowly 2>slowly.log; echo $? >slowly.code; } &
    mkfifo quietly.pgm
    { TMPDIR=$work/tmp.quietly mpi 2 smooth same/*.pgm quietly.pgm -O quietly --no-progress 2>quietly.log; echo $? >quietly.code; } &
    (
        exec 8>slowly.pgm 9>quietly.pgm
        sleep 10.5
        cat in/0/12.pgm >&8
        cat in/0/12.pgm >&9
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
    count=$(ls same | wc -l)
    # Not by process number: other processes may have these numbers by now.
    within 60 eval '[ -s slowly.code ] && [ -s quietly.code ]' || show_threads
    [ "$(cat slowly.code quietly.code | tr -d '\n')" = 00 ] && summary $((count + 1)) 0 0 slowly.log && summary $((count + 1)) 0 0 quietly.log &&
        [ "$(grep -cE "^gpufilter: $count of $((count + 1)) files, [0-9.]+ MP/s, [0-9]+:[0-9]+ left\$" slowly.log)" = 1 ] &&
        ! grep -q ' of ' quietly.log
}

test_batches() {
    make_pictures
    make_slow
    plain smooth -R in --out-dir want --radius 3 2>want.log
    made=$(find want -name '*.p?m' | wc -l)
    failed_files=$(failures want.log | wc -l)
    check "the run of one process makes 44 outputs and 17 errors" [ "$made/$failed_files" = 44/17 ]
    progress
    for ranks in 1 2 3 4; do
        check "a batch, $ranks ranks" as_one $ranks
        check "results of measuring filters, $ranks ranks" measured $ranks
    done
    check "every rank processes images" all_ranks_work
    check "--verbose names the rank" verbose
    check "standard input" from_input
    check "--resume" resumed
    check "an existing file is kept" kept
    check "--fail-fast" fails_fast
    check "a dry run" dry_run
    check "an unavailable backend" no_backend
    if grep -q 'fsanitize' "$build/config" || ! make_no_thread; then
        skip 2 "a rank without threads: a sanitizer is on, or there is no cc"
    else
        check "rank 0 cannot start threads" no_thread 0
        check "rank 2 cannot start threads" no_thread 2
    fi
    check "an invalid command is rejected once" rejected
    check "progress lines" progress_lines
}

test_batches
check_summary
