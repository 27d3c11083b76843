"""The package itself: structures, generated functions, types, the command, and docs/python.md."""

import ctypes
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import gpufilter
import pytest
from conftest import ROOT
from gpufilter import _library as c
from gpufilter import _program, _settings

PACKAGE = pathlib.Path(gpufilter.__file__).parent


# ---- the library --------------------------------------------------------------------------------


def test_structures(tmp_path):
    """Structures have the layout of the header; the compiler rejects unknown members."""
    if not shutil.which("cc"):
        pytest.skip("no cc")
    structures = [s for s in vars(c).values() if isinstance(s, type)
                  and issubclass(s, ctypes.Structure) and s is not ctypes.Structure]
    assert len(structures) > 12
    lines = ['#include <stdio.h>', '#include <stddef.h>', '#include "gpufilter.h"',
             "int main(void) {", 'printf("{\\"\\": 0");']
    for s in structures:
        lines.append('printf(", \\"%s\\": [%%zu", sizeof(%s));' % (s.__name__, s.__name__))
        for name, _ in s._fields_:
            place = s.__name__, name.rstrip("_")
            lines.append('printf(", [%%zu, %%zu]", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                         % (place * 2))
        lines.append('printf("]");')
    lines += ['printf(", \\"constants\\": [%d, %d, %d, %u, %u]}\\n",'
              " GF_VERSION, GF_MAX_COLUMNS, (int)GF_DEFAULT_QUALITY, GF_ALL_PAGES, GF_MAX_PAGE);", "}"]
    (tmp_path / "layout.c").write_text("\n".join(lines))
    subprocess.run(["cc", "-I", ROOT / "src", "layout.c", "-o", "layout"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "layout"], capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert found["constants"] == [c.VERSION, c.MAX_COLUMNS, c.DEFAULT_QUALITY, c.ALL_PAGES,
                                  c.MAX_PAGE]
    for s in structures:
        fields = [[getattr(s, name).offset, getattr(s, name).size] for name, _ in s._fields_]
        assert found[s.__name__] == [ctypes.sizeof(s)] + fields, s.__name__


def test_prototypes():
    """Every function has the number of arguments of the header."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "src/gpufilter.h").read_text(), flags=re.S)
    declared = {name: arguments for name, arguments in
                re.findall(r"GF_API [^;(]*?\b(gf_\w+)\(([^;]*)\)", header)}
    for name, _, *arguments in c.PROTOTYPES:
        text = declared[name]
        assert len(arguments) == (0 if text == "void" else text.count(",") + 1), name


def test_enums():
    header = (ROOT / "src/gpufilter.h").read_text()
    for prefix, names in {
            "GF_PARAM_": "FLAG INT FLOAT CHOICE LIST SIZE RANGE TEXT IMAGE SAMPLES PAIR INT_PAIR",
            "GF_VALUE_": "UINT FLOAT DOUBLE TEXT NONE", "GF_CHART_": "NONE BARS LINES",
            "GF_DEPTH_": " ".join(["INPUT"] + _settings.DEPTHS[1:]).upper()}.items():
        found = re.findall(r"^ *%s([A-Z0-9_]+),?(?= |$)" % prefix, header, re.M)
        assert found == names.split()
    assert (c.OK, c.FAILED, c.USAGE, c.NO_BACKEND) == (0, 1, 2, 3)


def run_python(code, **environment):
    path = str(PACKAGE.parent)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={
        **os.environ, "PYTHONPATH": path, **environment})


def test_lookup(tmp_path):
    """A library in the package comes first, then GPUFILTER_LIBRARY."""
    done = run_python("import gpufilter", GPUFILTER_LIBRARY=str(tmp_path / "none.so"))
    if list(PACKAGE.glob("libgpufilter.so*")):  # a wheel
        assert not done.stderr
        return
    assert "ImportError: cannot load libgpufilter" in done.stderr
    copy = tmp_path / "gpufilter"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.environ["GPUFILTER_LIBRARY"], copy / "libgpufilter.so.0")
    done = run_python("import gpufilter; print(gpufilter.__file__, gpufilter.__version__)",
                      GPUFILTER_LIBRARY="none.so", PYTHONPATH=str(tmp_path))
    assert done.stdout.split() == [str(copy / "__init__.py"), gpufilter.__version__], done.stderr


def test_no_package_is_imported():
    done = run_python("import gpufilter, sys; print([name for name in sys.modules"
                      " if name in ('torch', 'cupy', 'matplotlib', 'tqdm')])")
    assert done.stdout == "[]\n", done.stderr


def test_command(tmp_path):
    script = tmp_path / "gpufilter"
    script.write_text('#!/bin/sh\necho "run $*"\n')
    script.chmod(0o755)
    code = ("import sys, gpufilter._program as p; p.__file__ = %r;"
            "sys.argv = ['gpufilter', 'a', 'b c']; p.main()" % str(tmp_path / "_program.py"))
    assert run_python(code).stdout == "run a b c\n"
    script.unlink()
    assert "cannot run" in run_python(code).stderr
    assert callable(_program.main)


# ---- generated functions ------------------------------------------------------------------------


@pytest.mark.parametrize("found", c.FILTERS.values(), ids=list(c.FILTERS))
def test_signatures(found):
    """Keywords and defaults are those of the command line."""
    function = getattr(gpufilter, found.function)
    signature = inspect.signature(function)
    names = list(signature.parameters)
    params = [p for p in found.params if p.type != c.SAMPLES]
    inputs = 1 if found.info.inputs == 1 else 2
    assert names[inputs:] == [p.keyword for p in params] + [
        "out", "alpha", "backend", "threads", "stream"]
    for name, parameter in list(signature.parameters.items())[inputs:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert "\n    %s: " % name in inspect.getdoc(function)
    for param in params:
        default = signature.parameters[param.keyword].default
        if param.type in (c.FLAG, c.IMAGE):
            assert default is False
        else:
            assert (None if default is None else str(default)) == param.fallback
    files = inspect.signature(getattr(gpufilter, found.function + "_file"))
    assert [p.keyword for p in found.params] == [
        name for name in files.parameters if name in {p.keyword for p in found.params}]
    for text in ("Args:", "Returns:", "Raises:", "Example:", found.info.summary.decode()[1:]):
        assert text in function.__doc__


INPUT = ["autorotate", "alpha", "strict", "crop", "as_", "channels", "page"]
MEASURE = INPUT[:3] + ["keep_nodata"] + INPUT[3:]
OUTPUT = ["compression", "quality", "tiff_compression"]
LIMITS = ["max_pixels", "max_memory", "max_chunk", "max_seconds", "no_sandbox"]


@pytest.mark.parametrize("name, options", [
    ("read", INPUT + ["depth"] + LIMITS),
    ("write", ["alpha"] + OUTPUT + ["depth", "force", "format"]),
    ("batch", INPUT + OUTPUT + ["strip", "depth", "premultiply", "linear", "force", "format"] + LIMITS),
    ("smooth_file", INPUT + OUTPUT + ["strip", "depth", "premultiply", "linear", "force", "format"] + LIMITS),
    ("normalize_file", INPUT + OUTPUT + ["strip", "depth", "premultiply", "linear", "force", "format"] + LIMITS),
    ("hist_file", MEASURE + OUTPUT + ["strip", "depth", "force", "format"] + LIMITS),
    ("compare_file", MEASURE + OUTPUT + ["depth", "force", "format"] + LIMITS),
    ("axis_sum_file", MEASURE + ["force"] + LIMITS),
    ("dot_file", MEASURE + ["force"] + LIMITS),
])
def test_options_of_files(name, options):
    """A function has the options that mean something, and documents them."""
    function = getattr(gpufilter, name)
    known = {option.name for option in _settings.OPTIONS}
    assert [key for key in inspect.signature(function).parameters if key in known] == options
    for option in options:
        assert "\n    %s: " % option in inspect.getdoc(function)


def test_docstring_examples(image):
    """The examples in the docstrings of functions of arrays run."""
    for found in c.FILTERS.values():
        doc = getattr(gpufilter, found.function).__doc__
        example = re.search(r"Example:\n +result = (.*)\n", doc)[1]
        scope = {"gpufilter": gpufilter, "image": image, "a": image, "b": image}
        assert eval(example, scope) is not None
        doc = getattr(gpufilter, found.function + "_file").__doc__
        compile(re.search(r"Example:\n +(.*)\n", doc)[1], found.name, "eval")


def test_generated_lines():
    for path in PACKAGE.glob("*.py"):
        assert max(map(len, path.read_text().splitlines())) <= 100, path


def test_types(tmp_path):
    if not importlib.util.find_spec("mypy"):
        pytest.skip("no mypy")
    (tmp_path / "use.py").write_text('''
from typing import Any
import gpufilter
import numpy as np
import numpy.typing as npt

image: npt.NDArray[np.uint8] = np.zeros((4, 5, 3), np.uint8)
smooth: npt.NDArray[np.uint8] = gpufilter.smooth(image, radius=3, axis="xy", stages=["blur"])
counts: npt.NDArray[Any] = gpufilter.hist(image, bins=8, extract=3, range=(0, 9)).counts
equal: bool = gpufilter.compare(image, smooth).equal
for outcome in gpufilter.batch(["a"], "b", radius=1, page="all", depth="16"):
    print(outcome.error)
deep: npt.NDArray[Any] = gpufilter.read("a", page=2, depth="16", crop=(0, 0, 1, 1), autorotate=True)
gpufilter.write("a", deep, depth="8", quality=9, compression="small", tiff_compression="lzw")
gpufilter.smooth_file("a", "b", page="all", linear=True, strip=True)
chain = gpufilter.pipeline([gpufilter.steps.median(radius=2), "box", gpufilter.steps.write("a")])
chain.files("a", "b", force=True)
gpufilter.batch(["a"], "b", chain)
gpufilter.smooth(image, radius="3")  # wrong
gpufilter.smooth(image, axis="z")  # wrong
gpufilter.smooth(image, backend="gpu")  # wrong
gpufilter.smooth([1])  # wrong
gpufilter.hist(image).count  # wrong
gpufilter.smooth_file("a")  # wrong
gpufilter.read("a", page="all")  # wrong
gpufilter.write("a", image, depth=8)  # wrong
gpufilter.hist_file("a", linear=True)  # wrong
gpufilter.smooth_file("a", "b", compression="best")  # wrong
gpufilter.steps.median(radius="x")  # wrong
gpufilter.pipeline([1])  # wrong
''')
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache",
         "-p", "gpufilter", "-m", "use"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "MYPYPATH": "%s:%s" % (PACKAGE.parent, tmp_path), "PYTHONPATH": ""})
    wrong = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert all(line.startswith("use.py") for line in done.stdout.splitlines()[:-1]), done.stdout
    assert wrong == list(range(19, 31)), done.stdout + done.stderr


# ---- docs/python.md, README.md ------------------------------------------------------------------

GUIDE = (ROOT / "docs/python.md").read_text()


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_pages_run(tmp_path, monkeypatch, page):
    """The blocks run in order, in one directory; some need a GPU or a package, and are skipped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    scope = {}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
        if "torch" in block and not has_gpu():
            continue
        if ".plot()" in block and not importlib.util.find_spec("matplotlib"):
            continue
        exec(compile(block, page, "exec"), scope)
    assert "gpufilter" in scope


def has_gpu():
    if not importlib.util.find_spec("torch"):
        return False
    import torch
    return torch.cuda.is_available() and c.lib.gf_has_cuda()


def test_guide_lists_every_function():
    for name in gpufilter.__all__:
        assert re.search(r"\b%s\b" % name, GUIDE), name
