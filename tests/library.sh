#!/usr/bin/env bash
# The library as others meet it: tests/library.sh BUILD. What is installed, what is exported, and a
# program of one's own against it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=${1:-build}

# Every symbol that is exported is declared in the header, and the other way round.
exported() { nm -D --defined-only "$build/libgpufilter.so" | awk '$2 ~ /[TDBR]/ {print $3}' | sort; }
declared() { sed '/^typedef/d' src/gpufilter.h | grep -o '\bgf_[a-z_]*(' | tr -d '(' | sort -u; }
check "exported symbols are those of the header" diff <(declared) <(exported)

# The program on the shared library gives what the program on the static one does.
same_from_shared() {
    "$build/gpufilter" smooth --backend cpu samples/cutout.png "$work/a.pam" &&
        "$build/gpufilter-shared" smooth --backend cpu samples/cutout.png "$work/b.pam" &&
        cmp "$work/a.pam" "$work/b.pam"
}
check "the program on the shared library" same_from_shared

sanitized=$(grep -o -- '-fsanitize=[a-z,]*' "$build/config" | head -n 1)
make_install() {
    make --no-print-directory BUILD="$build" CUDA="$(grep -q -- -DGF_WITH_CUDA "$build/config" && echo 1 || echo 0)" \
        SAN="${sanitized#*=}" PREFIX=/usr DESTDIR="$work/root" "$1"
}
check "make install" make_install install
root=$work/root/usr
check "the installed program" "$root/bin/gpufilter" --version

cat >"$work/mine.c" <<'C'
#include <gpufilter.h>
#include <stdio.h>

int main(void) {
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_engine_options options = {.backend = "cpu"};
    gf_engine *engine;
    gf_error error;
    unsigned char in[8] = {9, 9, 9, 9, 9, 9, 9, 9}, out[8] = {0};
    gf_format format = {.width = 8, .height = 1, .channels = 1, .type = GF_U8};
    gf_pixels pixels[2] = {{in, 8}, {out, 8}};
    gf_result *result;
    if (gf_settings_set(settings, "keep-brightness", NULL, &error) ||
        gf_engine_open(&options, &engine, &error) ||
        gf_run_memory(engine, filter, settings, &format, pixels, out, 8, NULL, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    gf_settings_free(settings);
    for (int i = 0; i < 8; i++)
        if (out[i] != 9)
            return 1;
    filter = gf_filter_find("dot");
    info = gf_filter_describe(filter);
    settings = gf_settings_new(info->params, info->param_count);
    if (gf_run_memory(engine, filter, settings, &format, pixels, NULL, 0, &result, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int good = gf_result_cell(result, 0, 0, 1).low == 8 * 81;
    gf_result_free(result);
    gf_engine_close(engine);
    gf_settings_free(settings);
    return good ? 0 : 1;
}
C
if command -v pkg-config >/dev/null 2>&1; then
    flags() { PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root pkg-config "$@" gpufilter; }
    build_mine() {
        # shellcheck disable=SC2046
        cc -std=c11 -Wall -Wextra -Wpedantic -Werror $sanitized "$work/mine.c" $(flags --cflags) $(flags --libs) \
            -o "$work/mine" && LD_LIBRARY_PATH=$root/lib "$work/mine"
    }
    check "a program through pkg-config" build_mine
else
    skip 1 "pkg-config: not here"
fi
if command -v c++ >/dev/null 2>&1; then
    check "the header in C++" c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ src/gpufilter.h
else
    skip 1
fi
check "make uninstall" make_install uninstall
nothing_left() { [ -z "$(find "$work/root" -type f -o -type l)" ]; }
check "uninstall leaves nothing" nothing_left

check_sum
