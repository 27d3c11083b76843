#!/usr/bin/env python3
"""Change one constant or one comparison of the fast code at a time, and check that the tests detect it.

    tests/long/mutate.py [--every N] [--first K] [--jobs J] [--cuda] [FILE[:LINE]...]

Every mutant is built in a copy of the tree and runs the tests of its file; it is caught if it does not compile, or
a test fails, crashes or hangs. The mutants in tests/long/mutants.txt are equivalent: they change no observable
result; comments there give the reasons. Prints each survivor, a score per file, and the total; exit code 1 if a
mutant survives that is not in the list, or with --fail-under only if fewer of the others are caught.

These tokens are not mutated, because a change by one is not an error; the rules examine the text only: array sizes
in declarations, launch configurations and bounds of kernels, amounts of work per step (names such as TURNS),
prefetches, -1 in byte shuffles (-2 has the same effect), and the comparison in "a < b ? a : b" (both results are
equal then; but -0 is not 0).
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))

# Prefixes of fast files that have a slow counterpart, and the tests that compare both; the quickest test first.
FAST = {
    "filters/smooth/": ["test_smooth_integer", "test_smooth_simd", "test_cpu_limits", "test_equality"],
    "filters/axis_sum/": ["test_cpu_limits", "test_equality"],
    "filters/dot/": ["test_cpu_limits", "test_equality"],
    "filters/hist/": ["test_hist_simd", "test_cpu_limits", "test_equality"],
    "filters/compare/": ["test_equality"],
    "filters/convert/": ["test_convert_golden", "test_equality"],
    "filters/convolve/": ["test_convolve", "test_equality"],
    "filters/normalize/": ["test_equality"],
    "filters/percentile/": ["test_percentile", "test_equality"],
    "filters/separable/": ["test_separable_golden", "test_equality"],
    "filters/window/": ["test_edge", "test_equality"],
    "filters/samples": ["test_equality"],
    "src/io/strip/row_filter_simd.c": ["test_png_filter", "test_png_unfilter", "test_clipped"],
    "src/io/strip/count_largest_tmpl.h": ["test_clipped"],
    "src/io/png/read.c": ["test_png", "test_png_broken", "test_png_decode"],
    "src/io/flate/inflate.c": ["test_inflate_header", "test_inflate"],
    "src/io/flate/inflate_simd.c": ["test_inflate"],
    "src/io/png/idat.c": ["test_png_decode", "test_png_broken_stream"],
    "src/io/png/inflate.c": ["test_png_decode", "test_png_broken_stream"],
    "src/io/png/parallel.c": ["test_png_parallel"],
    "src/io/flate/deflate_simd.c": ["test_deflate"],
    "src/io/flate/deflate.c": ["test_deflate_code", "test_deflate"],
    "src/backend/cut.c": ["test_cut", "test_plan_map", "test_geometry", "test_chain", "test_stream_ring", "test_run"],
    "src/engine/pipeline/geometry.c": ["test_geometry", "test_stream", "test_stream_ring", "test_equality"],
    "src/core/convert": ["test_convert_golden", "test_convert", "test_srgb"],
    "src/core/vec.h": ["test_smooth_simd", "test_png_filter", "test_equality"],
    "cuda/": ["test_equality", "test_cuda_smooth", "test_cuda"],
}
# Golden is the reference; a descriptor (name, name.c) has tests of its own. Tables do not depend on the code that
# counts, and times always vary.
NOT_FAST = re.compile(r"_golden\.c$|filters/(\w+)/\1\.[ch]$|_result\.[ch]$|hist_(samples|tables)\.[ch]$"
                      r"|cuda/(speed|devices)")

TOKEN = re.compile(r"""
    (?P<skip> /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        | ^[ \t]*\#[ \t]*(?:include|if|ifdef|ifndef|elif|else|endif|undef|pragma|error)\b(?:\\\n|[^\n])*
        | \b(?:_Static_assert|static_assert|assert|__launch_bounds__|__builtin_prefetch)\s*
          \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)
        | <<<.*?>>>
        | \b(?:static\ const\ int|\#define)\ \w*(?:TURNS|RUNS|WARPS|BLOCKS|MANY|AHEAD)\b(?:=|[^;\n])*
        | <<=? | >>=? | -> | [A-Za-z_]\w* )
  | (?P<real> (?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]? )
  | (?P<int> 0[xX][0-9a-fA-F]+[uUlL]* | \d+[uUlL]* )
  | (?P<compare> <= | >= | == | != | < | > )
""", re.X | re.S | re.M)
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

# "float x[4], y[2];": a type, and names with brackets. The space distinguishes float *x[4] from a product.
DECLARED = re.compile(r"\b(?!(?:return|else|case|do|sizeof)\b)[A-Za-z_]\w* \*{0,2}[A-Za-z_]\w*(?:\[[^\]]*\])+"
                      r"(?:, \*{0,2}[A-Za-z_]\w*(?:\[[^\]]*\])*)*|\(\*\w+(?:\[[^\]]*\])+\)")
MIN_OR_MAX = re.compile(r"(?:(?<=\()|(?<== )|(?<=, )|(?<=: )|(?<=&& )|(?<=return ))(?P<a>[\w.>\[\]()\-+* ]+?) (?P<op>[<>]=?) "
                    r"(?P<b>[\w.>\[\]()\-+* ]+?) \? (?:(?P=a) : (?P=b)|(?P=b) : (?P=a))(?=[;,)\s])")
SHUFFLE = re.compile(r"_setr_epi8\([^()]*\)")

Mutant = collections.namedtuple("Mutant", "path number line column old new source")


def replacement(found):
    text = found.group()
    if found.lastgroup == "compare":
        return OTHER[text]
    if found.lastgroup == "real":
        suffix = "f" if text[-1] in "fF" else ""
        return f"({text} * 1.5{suffix})" if float(text.rstrip("fF")) else f"1.5{suffix}"
    digits = re.match(r"(0[xX][0-9a-fA-F]+|\d+)(.*)", text)
    value = int(digits.group(1), 16 if digits.group(1)[:2] in ("0x", "0X") else 10) + 1
    return (hex(value) if digits.group(1)[:2] in ("0x", "0X") else str(value)) + digits.group(2)


def is_template(text, found):
    """Return whether < or > belongs to a C++ template or cast: static_cast<int>(x), gf_quad<T>, template <...>."""
    if found.group() not in "<>":
        return False
    line = text[text.rfind("\n", 0, found.start()) + 1:text.find("\n", found.end())]
    at = found.start() - (text.rfind("\n", 0, found.start()) + 1)
    before, after = line[:at], line[at + 1:]
    return before[-1:] != " " or after[:1] != " " or "template" in before


def spans_not_mutated(text):
    """Return spans of a file's text whose tokens are not mutated; see above."""
    spans = [found.span() for found in DECLARED.finditer(text)]
    spans += [found.span("op") for found in MIN_OR_MAX.finditer(text) if not re.fullmatch(r"-?0(\.0)?f?", found.group("b"))]
    for shuffle in SHUFFLE.finditer(text):
        spans += [(shuffle.start() + minus.start(), shuffle.start() + minus.end())
                  for minus in re.finditer("-1", shuffle.group())]
    return spans


def mutants_of(path):
    with open(os.path.join(HERE, path), encoding="utf-8") as source:
        text = source.read()
    lines = text.split("\n")
    spans = spans_not_mutated(text)
    made = []
    for found in TOKEN.finditer(text):
        if found.lastgroup in (None, "skip") or (path.startswith("cuda/") and is_template(text, found)):
            continue
        if any(start <= found.start() < end for start, end in spans):
            continue
        number = text.count("\n", 0, found.start()) + 1
        column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
        new = text[:found.start()] + replacement(found) + text[found.end():]
        made.append(Mutant(path, number, lines[number - 1].strip(), column, found.group(), replacement(found), new))
    return made


def listed():
    """Return the files of the tree, also in a tarball without history."""
    found = subprocess.run(["packaging/source.sh", "files"], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [path for path in found.split("\0") if path]


def fast_files(cuda):
    return [path for path in listed() if path.startswith("cuda/") == cuda and tests_of(path) and not NOT_FAST.search(path)
            and path.endswith((".c", ".h", ".cu", ".cuh"))]


def tests_of(path):
    return next((tests for start, tests in FAST.items() if path.startswith(start)), None)


def name_of(mutant):
    """Return the name in tests/long/mutants.txt, with the change at its position: it does not depend on the line
    number."""
    line = mutant.source.split("\n")[mutant.number - 1]
    before, after = line[:mutant.column].lstrip(), line[mutant.column + len(mutant.new):].rstrip()
    return f"{mutant.path}: {before}[[{mutant.old} -> {mutant.new}]]{after}"


def read_equivalent():
    with open(os.path.join(HERE, "tests/long/mutants.txt"), encoding="utf-8") as file:
        return {line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")}


class Tree:
    """A copy of the tree with its own build."""

    def __init__(self, directory, make):
        self.directory, self.make = directory, make

    def run(self, command, limit):
        try:
            return subprocess.run(command, cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=limit, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def build(self, tests):
        return self.run(self.make + [f"build/tests/{test}" for test in tests], 900)

    def caught_by(self, mutant):
        """Return the name of the test that caught the mutant; None if it survived."""
        path = os.path.join(self.directory, mutant.path)
        with open(path, encoding="utf-8") as file:
            original = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(mutant.source)
        try:
            for test in tests_of(mutant.path):
                if not self.build([test]):
                    return "the compiler"
                if not self.run([f"build/tests/{test}"], 100):
                    return test
            return None
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(original)


def copy_tree(directory, first=None):
    if first:
        subprocess.run(["cp", "-a", first + "/.", directory], check=True)
        return
    for path in listed():
        os.makedirs(os.path.join(directory, os.path.dirname(path)), exist_ok=True)
        shutil.copy2(os.path.join(HERE, path), os.path.join(directory, path))


def prepare(arguments, files, where):
    # The first build compiles many files at once; mutants compile one each.
    make = ["make", "-s", "-j2", f"CUDA={int(arguments.cuda)}", "MPICC="] + arguments.make
    needed = sorted({test for path in files for test in tests_of(path)})
    trees = [Tree(os.path.join(where, str(i)), make) for i in range(arguments.jobs)]
    for i, tree in enumerate(trees):
        os.mkdir(tree.directory)
        copy_tree(tree.directory, trees[0].directory if i else None)
        if i == 0 and not tree.build(needed):
            sys.exit("the unchanged code does not build")
    for test in needed:
        if not trees[0].run([f"build/tests/{test}"], 300):
            sys.exit(f"{test} fails on the unchanged code")
    return trees


def run_all(mutants, trees, report, end):
    def work(piece):
        tree = idle.get()
        try:
            for mutant in piece:
                if time.monotonic() < end:
                    report(mutant, tree.caught_by(mutant))
        finally:
            idle.put(tree)

    idle = queue.SimpleQueue()
    for tree in trees:
        idle.put(tree)
    # A piece contains mutants of one file, so that each build recompiles the same file.
    size = 6
    pieces, piece = [], []
    for mutant in mutants:
        if piece and (piece[0].path != mutant.path or len(piece) == size):
            pieces.append(piece)
            piece = []
        piece.append(mutant)
    pieces.append(piece)

    with concurrent.futures.ThreadPoolExecutor(len(trees)) as pool:
        for _ in pool.map(work, pieces):
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every N-th mutant")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="start at the K-th mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="J")
    parser.add_argument("--cuda", action="store_true", help="mutate the kernels; needs a GPU")
    parser.add_argument("--make", action="append", default=[], metavar="NAME=VALUE", help="pass to make")
    parser.add_argument("--list", action="store_true", help="list the mutants without running them")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="start no mutant after S seconds")
    parser.add_argument("--fail-under", type=float, default=100, metavar="PERCENT", help="fail if fewer mutants are caught")
    parser.add_argument("files", nargs="*", metavar="FILE[:LINE]")
    arguments = parser.parse_args()
    named = {file.partition(":")[0] for file in arguments.files}
    files = [path for path in fast_files(arguments.cuda) if not named or path in named]
    mutants = [mutant for path in files for mutant in mutants_of(path)
               if not named or {mutant.path, f"{mutant.path}:{mutant.number}"} & set(arguments.files)]
    mutants = mutants[arguments.first::arguments.every]
    if arguments.list or not mutants:
        for mutant in mutants:
            print(f"{mutant.path}:{mutant.number}: {mutant.old} -> {mutant.new}")
        print(f"{len(mutants)} mutants in {len(files)} files")
        return
    equivalent = read_equivalent()
    every = {name_of(mutant) for cuda in (False, True) for path in fast_files(cuda) for mutant in mutants_of(path)}
    if equivalent - every:
        sys.exit("\n".join(["tests/long/mutants.txt lists mutants that do not exist:"] + sorted(equivalent - every)))
    scores = collections.defaultdict(collections.Counter)
    end = time.monotonic() + arguments.seconds

    def report(mutant, test):
        outcome = "caught" if test else "equivalent" if name_of(mutant) in equivalent else "survived"
        scores[mutant.path][outcome] += 1
        if outcome == "survived":
            print(f"SURVIVED {name_of(mutant)} (line {mutant.number})", flush=True)

    with tempfile.TemporaryDirectory(prefix="gpufilter-mutants-") as where:
        trees = prepare(arguments, files, where)
        run_all(mutants, trees, report, end)
    whole = collections.Counter()
    for path in files:
        score = scores[path]
        whole.update(score)
        if score:
            print(f"{path:40} {score['caught']:4} caught {score['equivalent']:3} equivalent {score['survived']:3} survived")
    tried = whole["caught"] + whole["survived"]
    percent = 100.0 * whole["caught"] / max(tried, 1)
    print(f"mutants {sum(whole.values())}: {whole['caught']} caught, {whole['equivalent']} equivalent, "
          f"{whole['survived']} survived: {percent:.1f} %")
    sys.exit(percent < arguments.fail_under)


main()
