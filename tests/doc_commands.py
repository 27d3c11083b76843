#!/usr/bin/env python3
"""Runs every command line that a document tells its reader to type.

    tests/doc_commands.py BUILD FIXTURES TREE [--docs FOLDER] [--table FILE] [--list]

Which lines these are says tests/doc_find.py: of all .md files, the help of the program, and its manual pages. Those of a
block run in order, in one folder, which has the files of FIXTURES in it and those of TREE, a copy of the project; each
must end with exit code 0. What cannot be run so stands in tests/doc_commands.txt (tests/doc_table.py), with what is done
instead. Failures are a line that fails, a mere template that is not in that table, and an entry of the table that no line
needs. --list shows all lines and what is done with them, and code blocks that have none; it runs nothing.
"""
import argparse
import collections
import concurrent.futures
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import doc_find
import doc_shell
import doc_table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What is done with a command, and what came of it: as is, shortened, dry, left, skipped, named or FAIL.
Step = collections.namedtuple("Step", "command text action")
Outcome = collections.namedtuple("Outcome", "how why said")


def sources(tree):
    """The text of all that make reads or starts, where a variable must be named to mean something."""
    parts = []
    for folder, _, names in os.walk(tree):
        for name in names:
            if name == "Makefile" or name.endswith((".mk", ".sh")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    parts.append(file.read())
    return "\n".join(parts)


class Checker:
    def __init__(self, arguments):
        self.build, self.fixtures = os.path.abspath(arguments.build), os.path.abspath(arguments.fixtures)
        self.tree = os.path.abspath(arguments.tree)
        self.table = doc_table.Table(arguments.table)
        self.program = os.path.join(self.build, "gpufilter")
        devices = subprocess.run([self.program, "devices"], capture_output=True, text=True, check=False)
        self.gpu = re.search(r"^cuda \d", devices.stdout, re.M)
        self.lock, self.done = threading.Lock(), {}
        self.sources = sources(self.tree)

    # ---- what is to be done -------------------------------------------------------------------------

    def step(self, command):
        if command.text is None:
            return Step(command, "", None)
        text = doc_find.bare(command.text)
        action = self.table.find(command.path, text)
        if action is None:
            action = doc_table.Action("run", "", "", ())
        return Step(command, text, action)

    @functools.lru_cache(maxsize=None)
    def plots(self):
        """Can this build draw plots, on this machine?"""
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([os.path.join(self.build, "gpufilter"), "hist", "-q", "--plot", os.path.join(folder, "p.svg"),
                                   os.path.join(ROOT, "samples/page.png")], capture_output=True).returncode == 0

    def missing(self, action):
        for need in action.needs:
            if need == "a GPU":
                here = self.gpu
            elif need == "cairo":
                here = self.plots()
            elif need.startswith("build/"):
                here = os.path.exists(os.path.join(self.build, need.removeprefix("build/")))
            else:
                here = shutil.which(need, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
            if not here:
                return f"there is no {need.removeprefix('a ')}"
        return None

    @functools.lru_cache(maxsize=None)
    def lines_of(self, script):
        """The text of a script, or what it prints when it is asked for the lines that it runs."""
        name, _, listed = script.partition(" ")
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        if listed:
            text = subprocess.run([os.path.join(ROOT, name), self.build, listed], capture_output=True, text=True,
                                  check=True).stdout
        return " ".join(re.sub(r"\\\n\s*", " ", text).split())

    def left(self, step):
        """Why a line is not what the script runs to which it is left; None if it is."""
        script = step.action.value.partition(" ")[0]
        with open(os.path.join(ROOT, "tests/run.sh"), encoding="utf-8") as file:
            suite = file.read()
        if script not in suite and script != "tests/run.sh":
            return f"{script} is not in tests/run.sh"
        if step.action.text:
            return None if step.action.text in self.lines_of(step.action.value) else f"{script} has no {step.action.text}"
        if script == "tests/run.sh": # all unit tests, and the scripts that it names
            unit = re.fullmatch(r"build/tests/(test_\w+)", step.text)
            ran = re.fullmatch(r"(tests/\w+\.sh) build", step.text)
            if unit and os.path.exists(os.path.join(ROOT, "tests", unit[1] + ".c")):
                return None
            if ran and re.search(re.escape(ran[1]) + r"\b", suite):
                return None
        elif step.text in self.lines_of(step.action.value):
            return None
        return f"{script} does not run that line"

    def instead(self, step):
        """The command that is run, and why it cannot be (else None)."""
        if step.action.kind == "as":
            return step.action.value, None
        if step.action.kind == "dry":
            if not re.fullmatch(r"(sudo )?make( [^&;|<>]*)?", step.text):
                return "", "only a make alone can be run dry"
            for name in re.findall(r"\s([A-Z_]+)=", step.text):
                if not re.search(rf"\b{name}\b", self.sources):
                    return "", f"no Makefile knows {name}"
            return re.sub(r"^(sudo )?make\b", "make -n", step.text), None
        if "..." in step.text:
            return "", "it has ... in it: tests/doc_commands.txt must say what is run instead"
        return self.table.fill(step.command.text if "\n" in step.command.text else step.text), None

    # ---- doing it -----------------------------------------------------------------------------------

    def run(self, shell, step):
        action = step.action
        if action is None:
            return Outcome("FAIL", "no command line in it: are there no examples any more?", "")
        missing = self.missing(action)
        if missing:
            return Outcome("skipped", missing, "")
        if action.kind == "skip":
            return Outcome("skipped", action.value, "")
        if action.kind == "no command":
            return Outcome("named", "", "")
        if action.kind == "by":
            why = self.left(step)
            return Outcome("FAIL" if why else "left", why, "")
        text, why = self.instead(step)
        if why:
            return Outcome("FAIL", why, "")
        short = action.kind in ("as", "dry")
        with self.lock:
            if short and text in self.done:
                return self.done[text]
        before = shell().files() if short else set()
        code, said = shell().run(text)
        for _ in range(8):
            if code != 1 or not shell().forget(said, self.fixtures):
                break
            code, said = shell().run(text)
        why = self.wrong(action, code, said)
        if why and text != step.text:
            why = f"as `{text}`: {why}"
        outcome = Outcome("FAIL" if why else {"as": "shortened", "dry": "dry"}.get(action.kind, "as is"), why, said)
        with self.lock:
            if short and shell().files() == before: # it leaves nothing: once will do, wherever it stands
                self.done[text] = outcome
        return outcome

    def wrong(self, action, code, said):
        if code is None:
            return said or f"it takes more than {doc_shell.LIMIT} s"
        want = action.value if action.kind == "exit" or action.kind == "no GPU" and not self.gpu else 0
        if code != want:
            return f"exit code {code}, not {want}"
        if action.kind == "no GPU" and want and not re.fullmatch(r"gpufilter: .*\n", said):
            return "standard error is not one line that says why"
        if want and action.text not in said:
            return f"standard error does not say: {action.text}"
        return None

    def block(self, commands):
        """The outcomes of a block, whose folder is made when it is needed."""
        made = []

        def shell():
            if not made:
                made.append(doc_shell.Shell(self.build, self.tree, self.fixtures))
            return made[0]

        try:
            return [self.run(shell, step) for step in commands]
        finally:
            for one in made:
                one.end()


# ---- telling ------------------------------------------------------------------------------------------


def tell(steps, outcomes, table):
    counts, skipped = collections.Counter(), collections.Counter()
    for step, outcome in zip(steps, outcomes):
        counts[outcome.how] += 1
        if outcome.how == "skipped":
            skipped[outcome.why] += 1
        if outcome.how == "FAIL":
            print(f"FAIL {step.command.path}:{step.command.line}: {step.text}\n     {outcome.why}")
            for line in outcome.said.rstrip().split("\n")[:8] if outcome.said else []:
                print(f"     | {line}")
    for rule in table.unused():
        counts["FAIL"] += 1
        print(f"FAIL {os.path.relpath(table.path, ROOT)}:{rule.number}: no document has such a line: {rule.pattern}")
    for why, count in sorted(skipped.items()):
        print(f"SKIP {count}: command lines of the documents: {why}")
    print(f"{len(steps) - counts['named']} command lines in {len({step.command.path for step in steps})} documents and "
          f"pages: {counts['as is']} run, {counts['shortened']} run in a shortened form, {counts['dry']} by make -n, "
          f"{counts['left']} left to a named script, {counts['skipped']} skipped; {counts['named']} more are names")
    passed = sum(counts[how] for how in ("as is", "shortened", "dry", "left"))
    print(f"{passed} passed, {counts['FAIL']} failed, {counts['skipped']} skipped")
    return counts["FAIL"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("build", "fixtures", "tree"):
        parser.add_argument(name)
    parser.add_argument("--docs", help="documents of this folder, and no help and manual")
    parser.add_argument("--table", default=os.path.join(ROOT, "tests/doc_commands.txt"))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    try:
        checker = Checker(arguments)
    except doc_table.Wrong as wrong:
        sys.exit(f"FAIL {wrong}\n0 passed, 1 failed, 0 skipped")
    found, others = doc_find.in_markdown(arguments.docs or ROOT)
    if not arguments.docs:
        found += doc_find.in_help(checker.program) + doc_find.in_manual(checker.build)
    blocks = [[checker.step(command) for command in block] for block in found]
    if arguments.list:
        show(blocks, others)
        return
    # A block that stands in two documents is run once.
    alike = {key(block): block for block in reversed(blocks)}
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        came = dict(zip(alike, pool.map(checker.block, alike.values())))
    steps = [step for block in blocks for step in block]
    outcomes = [outcome for block in blocks for outcome in came[key(block)]]
    sys.exit(0 if tell(steps, outcomes, checker.table) else 1)


def key(block):
    return tuple((step.command.text, step.action) for step in block)


def show(blocks, others):
    for step in (step for block in blocks for step in block if step.action):
        print(f"{step.command.path}:{step.command.line}: {step.text}  [{step.action.kind} {step.action.value}]")
    for path, line, text in others:
        print(f"{path}:{line}: a block without commands: {text.strip()[:60]}")


main()
