"""Compare docs/library.py with the header, the program and NumPy: tests/docs/library_check.py BUILD DIRECTORY

Its structures must have the layout of the C compiler. Its results must equal those of the program for the same
pixels in a file, and those of tests/system/numpy/. The loader must find libgpufilter.so.0 (LD_LIBRARY_PATH). One
check is one structure, or one image through one filter."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system/numpy")]
from files import write_image  # noqa: E402
from filters import smooth  # noqa: E402

sys.dont_write_bytecode = True
passed, failed = 0, 0


def check(what, ok):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", what)


def load(path):
    spec = importlib.util.spec_from_file_location("library", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- structures ------------------------------------------------------------------------------------------


def layouts_in_c(structures, directory):
    """Return {structure: [bytes, {member: (offset, bytes)}]}; the compiler rejects unknown members."""
    lines = ["#include <stdio.h>", '#include "gpufilter.h"', "int main(void) {", 'printf("{\\"\\": 0");']
    for s in structures:
        name = s.__name__
        lines.append('printf(", \\"%s\\": [%%zu, {", sizeof(%s));' % (name, name))
        for i, (member, _) in enumerate(s._fields_):
            lines.append('printf("%s\\"%s\\": [%%zu, %%zu]", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                         % (", " if i else "", member, name, member, name, member))
        lines.append('printf("}]");')
    lines += ['printf("}\\n");', "return 0;", "}"]
    source = os.path.join(directory, "layout.c")
    with open(source, "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(["cc", "-std=c11", "-Isrc", source, "-o", source[:-2]], check=True)
    return json.loads(subprocess.run([source[:-2]], stdout=subprocess.PIPE, check=True).stdout)


def check_layouts(library, directory):
    structures = [s for s in vars(library).values()
                  if isinstance(s, type) and issubclass(s, ctypes.Structure)]
    in_c = layouts_in_c(structures, directory)
    check("docs/library.py has structures", len(structures) >= 5)
    for s in structures:
        here = [ctypes.sizeof(s), {name: [getattr(s, name).offset, getattr(s, name).size] for name, _ in s._fields_}]
        check("%s has the layout of the header: C %s, Python %s" % (s.__name__, in_c[s.__name__], here),
              here == in_c[s.__name__])
    text = open("src/gpufilter.h").read()
    check("MAX_COLUMNS", "#define GF_MAX_COLUMNS %d\n" % library.MAX_COLUMNS in text)


# ---- pixels ------------------------------------------------------------------------------------------------


def images(rng):
    """Yield contiguous arrays, parts of larger ones, and single rows."""
    for kind, maximum in (("u1", 255), ("u2", 65535), ("f4", 1)):
        for channels in (1, 3) if kind == "f4" else (1, 2, 3, 4):
            whole = rng.random((23, 37, channels)) * maximum
            whole = whole.astype(kind)
            yield whole
            yield whole[5:-3, 7:-2]
            yield whole[::2]
            yield whole[4:5, 1:]


def check_images(library, program, directory):
    rng = np.random.default_rng(int(os.environ.get("GF_TEST_SEED", "1")))
    with library.Engine() as engine:
        for number, image in enumerate(images(rng)):
            what = "%s of strides %s" % (image.shape, image.strides)
            path = write_image(os.path.join(directory, "in%d" % number), np.ascontiguousarray(image))
            check("read: " + what, np.array_equal(library.read(path), image))

            made, tables = engine.run("smooth", image, axis="xy", radius=3, keep_brightness=True)
            want = smooth.smooth(image, np.float32(1), 3, np.float32(0.6), "enhance,blur,smooth", "xy", 0, True)
            check("smooth equals NumPy: " + what, made.tobytes() == want.tobytes() and tables == {})
            out = os.path.join(directory, "out%d%s" % (number, os.path.splitext(path)[1]))
            command = [program, "smooth", "--axis", "xy", "--radius", "3", "-k", path, out]
            subprocess.run(command, check=True)
            check("smooth equals the program: " + what, made.tobytes() == library.read(out).tobytes())

            made, tables = engine.run("hist", image, bins=8, channel="all")
            command = [program, "hist", "--bins", "8", "--channel", "all", "--json", path]
            record = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            check("hist equals the program: " + what, made is None and tables == record["result"])


def check_file(library, program, directory):
    """Compare the library and the program on the image of the example."""
    out = os.path.join(directory, "scene.pam")
    subprocess.run([program, "smooth", "--axis", "xy", "samples/scene.png", out], check=True)
    with library.Engine() as engine:
        made, _ = engine.run("smooth", library.read("samples/scene.png"), axis="xy")
    check("smooth of samples/scene.png", np.array_equal(made, library.read(out)))


def check_rejections(library):
    def rejects(kind, part, name, image, **options):
        try:
            engine.run(name, image, **options)
        except kind as error:
            return part in str(error)
        return False

    image = np.zeros((4, 5, 3), np.uint8)
    with library.Engine() as engine:
        check("columns with gaps", rejects(ValueError, "copy()", "hist", image[:, ::2]))
        check("rows from the bottom up", rejects(ValueError, "copy()", "hist", image[::-1]))
        check("two dimensions", rejects(ValueError, "H x W x C", "hist", image[0]))
        check("other types", rejects(ValueError, "H x W x C", "hist", image.astype(">u2")))
        check("other filters", rejects(ValueError, "no filter", "sharpen", image))
        check("filters of two images", rejects(ValueError, "no filter", "dot", image))
        check("messages of the library", rejects(RuntimeError, "--bins '0': must be", "hist", image, bins=0))


def main(build, directory):
    program = os.path.join(build, "gpufilter")
    library = load("docs/library.py")
    check_layouts(library, directory)
    check_images(library, program, directory)
    check_file(library, program, directory)
    check_rejections(library)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
