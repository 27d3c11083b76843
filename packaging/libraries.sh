#!/usr/bin/env bash
# Build static libraries for another processor or C library: libraries.sh PREFIX PROCESSOR. Download their sources
# (libraries.txt) into PREFIX/../sources. Reads the commands CC, AR and RANLIB. PREFIX/complete lists what was built.
set -euo pipefail
umask 022
here=$(cd "${0%/*}" && pwd)
mkdir -p "$1"
prefix=$(realpath "$1") processor=$2
sources=$(realpath -m "$prefix/../sources") work=$prefix/work
: "${CC:?}" "${AR:=ar}" "${RANLIB:=ranlib}"
# The sources of a release stay in the pool while it is supported, and in the archive of snapshots.
mirrors="https://deb.debian.org/debian https://snapshot.debian.org/archive/debian/20260101T000000Z"

wanted=$(cat "$here/libraries.txt" "$0"; echo "$CC $processor")
! cmp -s - "$prefix/complete" <<<"$wanted" || exit 0

fetch() { # FILE SHA256 PATH
    local mirror
    for mirror in $mirrors; do
        ! sha256sum --status -c - <<<"$2  $1" 2>/dev/null || return 0
        curl -fsSL --retry 3 -o "$1.part" "$mirror/pool/main/${3//+/%2B}" && mv "$1.part" "$1" || rm -f "$1.part"
    done
    sha256sum --status -c - <<<"$2  $1" 2>/dev/null || {
        echo "$3: cannot download it from Debian: this build needs the network" >&2
        exit 1
    }
}

# Options that leave out programs, tests, and codecs that TIFF files of this project's limits do not use.
cmake_options() { # NAME
    case $1 in
    zlib) echo -DZLIB_BUILD_EXAMPLES=OFF ;;
    libdeflate) echo -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_BUILD_GZIP=OFF ;;
    zstd) echo -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_BUILD_TESTS=OFF ;;
    libpng) echo -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF -DPNG_EXECUTABLES=OFF ;;
    libjpeg) echo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF ;;
    libtiff) echo -Dtiff-tools=OFF -Dtiff-tests=OFF -Dtiff-contrib=OFF -Dtiff-docs=OFF -Dtiff-cxx=OFF -Djbig=OFF \
        -Dlerc=OFF -Dlzma=OFF -Dwebp=OFF -Dlibdeflate=OFF \
        -DCMath_HAVE_LIBC_POW=ON ;; # libm is outside of PREFIX
    cmocka) echo -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF ;;
    esac
}

rm -rf "$prefix"
mkdir -p "$sources" "$work" "$prefix/include/stb"
while read -r name sum path; do
    [ "$name" != '#' ] || continue
    archive=$sources/${path##*/} source=$work/$name
    fetch "$archive" "$sum" "$path"
    mkdir "$source"
    tar -C "$source" --strip-components=1 -xf "$archive"
    if [ "$name" = stb ]; then
        cp "$source"/stb_image*.h "$prefix/include/stb"
        continue
    fi
    directory=$source
    case $name in
    zstd) directory=$source/build/cmake ;;
    zlib) mkdir -p "$source/win32" && : >"$source/win32/zlib1.rc" ;; # Debian's archive lacks it, CMake names it
    esac
    printf '  %-5s %s\n' BUILD "${path##*/} for $processor"
    # shellcheck disable=SC2046 # words
    cmake -S "$directory" -B "$source/out" -G "Unix Makefiles" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$processor" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_AR="$(command -v "$AR")" -DCMAKE_RANLIB="$(command -v "$RANLIB")" \
        -DCMAKE_ASM_NASM_COMPILER=nasm -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON $(cmake_options "$name") >"$source.log" 2>&1 &&
        cmake --build "$source/out" -j "$(getconf _NPROCESSORS_ONLN)" >>"$source.log" 2>&1 &&
        cmake --install "$source/out" >>"$source.log" 2>&1 || {
        tail -n 30 "$source.log" >&2
        exit 1
    }
    rm -f "$prefix"/lib/*.so*
done <"$here/libraries.txt"
rm -rf "$work"
echo "$wanted" >"$prefix/complete"
