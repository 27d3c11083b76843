#!/usr/bin/env python3
"""Reports how many lines and branches of our own code the tests took: coverage.py BUILD [--least PERCENT] [--missing FILE...]

Reads what a build with --coverage left under BUILD/counts, a folder for each test (GCOV_PREFIX). A file that is compiled several times (SIMD code, once a level; a
header, once a file that includes it) counts once: a branch is taken if it was in any of them.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys


def find_counts(build):
    """Lists of files in one folder each, with the compiler's notes beside them. What no test ran counts, too."""
    for folder, _, names in os.walk(os.path.join(build, "obj")):
        notes = [os.path.join(folder, name) for name in names if name.endswith(".gcno")]
        if notes:
            yield notes
    for folder, _, names in os.walk(os.path.join(build, "counts")):
        counts = [os.path.join(folder, name) for name in names if name.endswith(".gcda")]
        for path in counts:
            note = path[:-len("da")] + "no"
            if not os.path.lexists(note):
                real = os.path.abspath(build)
                os.symlink(real + note.split(real, 1)[1], note)
        if counts:
            yield counts


def read_counts(paths):
    made = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout"] + paths,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [file for line in made.stdout.splitlines() if line for file in json.loads(line)["files"]]


def is_ours(path):
    return not os.path.isabs(path) and path.split("/")[0] in ("src", "filters", "golden")


def gather(build):
    """{file: {line: [times taken, {number of branches: [times, ...]}]}}"""
    files = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for parts in pool.map(read_counts, find_counts(build)):
            for part in parts:
                if is_ours(part["file"]):
                    add(files.setdefault(part["file"], {}), part["lines"])
    return files


def add(lines, more):
    for line in more:
        taken, ways = lines.get(line["line_number"], (0, {}))
        # Where a compilation knows only some of a line's branches (the others cannot be in it), they cannot be
        # told from each other: the fullest one counts.
        here = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        so_far = ways.setdefault(len(here), [0] * len(here))
        ways[len(here)] = [a + b for a, b in zip(so_far, here)]
        lines[line["line_number"]] = (taken + line["count"], ways)


def count(lines):
    made = {"lines": 0, "lines_taken": 0, "branches": 0, "branches_taken": 0, "missing": []}
    for number, (taken, ways) in sorted(lines.items()):
        made["lines"] += 1
        made["lines_taken"] += taken != 0
        best = ways[max(ways)]
        made["branches"] += len(best)
        made["branches_taken"] += sum(n != 0 for n in best)
        if taken == 0 or 0 in best:
            made["missing"].append((number, taken, sum(n != 0 for n in best), len(best)))
    return made


def share(part, whole):
    return 100.0 * part / whole if whole else 100.0


def show_missing(path, made):
    with open(path, encoding="utf-8") as source:
        text = source.read().splitlines()
    for number, taken, got, all_of_them in made["missing"]:
        what = "never" if taken == 0 else f"{got}/{all_of_them}"
        print(f"{path}:{number}: {what:>6}  {text[number - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--least", type=float, default=0, help="fail below so many percent of all branches")
    parser.add_argument("--missing", nargs="*", help="list what was not taken of these files (none named: of all)")
    arguments = parser.parse_args()
    table = {path: count(lines) for path, lines in gather(arguments.build).items()}
    if not table:
        sys.exit(f"{arguments.build}: nothing was measured; build it with --coverage and run the tests")
    if arguments.missing is not None:
        for path in arguments.missing or sorted(table):
            show_missing(path, table[path])
        return
    for path in sorted(table, key=lambda p: table[p]["branches"] - table[p]["branches_taken"]):
        made = table[path]
        print(f"{path:44} lines {share(made['lines_taken'], made['lines']):5.1f} %  branches "
              f"{share(made['branches_taken'], made['branches']):5.1f} %  ({made['branches'] - made['branches_taken']} not taken)")
    total = {key: sum(made[key] for made in table.values()) for key in ("lines", "lines_taken", "branches", "branches_taken")}
    branches = share(total["branches_taken"], total["branches"])
    print(f"all: {len(table)} files, lines {share(total['lines_taken'], total['lines']):.1f} % of {total['lines']}, "
          f"branches {branches:.1f} % of {total['branches']}")
    if branches < arguments.least:
        sys.exit(f"branches: {branches:.1f} % is less than {arguments.least:g} %")


main()
