#!/usr/bin/env python3
"""Run every command line in the documents and the help: doc_commands.py BUILD FIXTURES TREE

In Markdown, these are command lines:
  * Code blocks, fenced or indented by four spaces. A fenced block marked sh, bash or console contains commands; blocks
    with other marks do not. A fenced block without a mark or an indented block contains commands if one of its lines
    begins with one of PROGRAMS. If lines begin with "$ ", only those are commands.
  * `code` in running text that is one of PROGRAMS with at least one operand or option (for gpufilter, in addition to
    the filter: `gpufilter smooth` is a name). In a table column headed "command", all `code` is a command.
In the help, the lines that begin with "  gpufilter " are command lines.

The lines of a block run in order in one bash, in a directory with the files of FIXTURES and of TREE, a copy of the project.
Each must end with exit code 0. tests/docs/doc_commands.txt lists the lines that cannot run unchanged:

    PATTERN => ACTION       the first match applies; * matches any text; "FILE: PATTERN" applies to one document
    NAME = VALUE            a placeholder, such as FILE, and its value

Actions. "needs PROGRAM, PROGRAM; " may precede them ("a GPU" and "cairo" count as programs); if one is missing, the
line is skipped:

    run                     unchanged
    exit N                  unchanged; must end with this exit code
    exit 3 without a GPU    unchanged; exit code 3 and one line on standard error if there is no GPU, else 0
    as COMMAND              run this shorter command instead
    dry                     run "make -n", without the makes that its recipes start: the target exists, and a Makefile or
                            script uses each variable
    by SCRIPT               do not run: this script, which tests/run runs, contains the same line
    by SCRIPT list          ... or "SCRIPT BUILD list" prints it; "by SCRIPT: TEXT": the script contains TEXT
    skip: REASON            do not run
"""
import collections
import concurrent.futures
import functools
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TABLE = "tests/docs/doc_commands.txt"
BLOCK_TIMEOUT = 600 # seconds per block
MIN_LINES = 200 # fewer command lines mean that the search is broken

# First words of command lines; every path that begins with one of DIRECTORIES also counts.
PROGRAMS = set("""gpufilter gpufilter-mpi make sudo apt apt-get dpkg dpkg-deb dpkg-buildpackage docker podman lintian
    mpirun mpiexec srun sbatch salloc parallel seq numactl cc gcc clang c++ nvcc pkg-config cmake python3 pip bash
    compute-sanitizer ncu nsys valgrind perf cat echo printf cp ln mkdir cd export find ls git tar curl wget ldd""".split())
DIRECTORIES = ("./", "build/", "tests/", "bench/", "samples/", "packaging/", ".ci/")

Command = collections.namedtuple("Command", "path line text")

# ---- finding command lines -----------------------------------------------------------------------------


def program_of(text):
    """Return the program and its arguments, without sudo and NAME=VALUE before it; "" if it is none of PROGRAMS."""
    words = text.split()
    while words and (words[0] == "sudo" or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
    known = words and (words[0] in PROGRAMS or words[0].startswith(DIRECTORIES))
    return (words[0], words[1:]) if known else ("", [])


def is_line(span):
    program, words = program_of(span)
    least = 1 if program != "gpufilter" or words[:1] and words[0].startswith("-") else 2
    return bool(program) and len(words) >= least


def bare(text):
    """Return the text on one line, without its comment, with one space between words."""
    text = re.sub(r"\\\n\s*", " ", text)
    if "\n" not in text:
        text = re.sub(r"(^|\s)# .*$", "", text)
    return " ".join(text.split())


def is_open(text):
    """Return whether bash expects more lines, to end a quotation, a loop or a here-document."""
    stderr = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stderr
    return text.endswith("\\") or "unexpected end" in stderr or "unexpected EOF" in stderr or "here-document at" in stderr


def commands_in(path, lines, mark):
    """Return the commands of a code block, whose lines are (number, text) without indentation."""
    if mark not in ("", "sh", "bash", "console"):
        return []
    if not mark and not any(program_of(text.removeprefix("$ "))[0] for _, text in lines):
        return []
    prompt = any(text.startswith("$ ") for _, text in lines)
    found, first, whole = [], 0, ""
    for number, text in lines:
        if whole:
            whole += "\n" + (text.removeprefix("> ") if prompt else text).rstrip()
        elif prompt and text.startswith("$ ") or not prompt and text.strip() and not text.lstrip().startswith("#"):
            first, whole = number, text.removeprefix("$ ").rstrip()
        if whole and not is_open(whole):
            found.append(Command(path, first, whole))
            whole = ""
    return found


def spans_in(path, number, text, wanted):
    """Yield the commands in `code` of a paragraph or a cell, each as its own block."""
    for found in re.finditer(r"(`+)(.+?)\1(?!`)", text, re.S):
        span = " ".join(found[2].split())
        if wanted(span):
            yield [Command(path, number + text.count("\n", 0, found.start()), span)]


def in_markdown(path, text):
    """Yield the blocks of commands in a document."""
    lines = list(enumerate(text.split("\n"), 1))
    columns, at = [], 0
    while at < len(lines):
        number, line = lines[at]
        start, at = at, at + 1
        fence = re.match(r"( *)(```+|~~~+) *([\w-]*)", line)
        if fence:
            while at < len(lines) and lines[at][1].strip() != fence[2]:
                at += 1
            code, mark = lines[start + 1:at], fence[3]
            at += 1
        elif line.startswith("    "):
            while at < len(lines) and (lines[at][1].startswith("    ") or not lines[at][1].strip()):
                at += 1
            code, mark = lines[start:at], ""
        elif line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:]]
            columns = columns or cells
            for column, cell in zip(columns, cells):
                yield from spans_in(path, number, cell, str if column == "command" else is_line)
            continue
        else: # a paragraph ends at an empty line, or before another paragraph, an item or a table
            columns = []
            while line.strip() and at < len(lines) and re.match(r" *(?![*+-] |\d+\. |\||```|#)\S", lines[at][1]):
                at += 1
            yield from spans_in(path, number, "\n".join(text for _, text in lines[start:at]), is_line)
            continue
        indent = min((len(text) - len(text.lstrip()) for _, text in code if text.strip()), default=0)
        yield commands_in(path, [(number, text[indent:]) for number, text in code], mark)


def in_help(program):
    """Yield the examples in the help of each filter and command."""
    def page(*names):
        return subprocess.run([program, "help", *names], capture_output=True, text=True, check=True).stdout.split("\n")

    section = ""
    for line in page():
        section = "" if not line else line.rstrip(":") if line.endswith(":") else section
        if section in ("Filters", "Commands") and line.startswith("  "):
            name = line.split()[0]
            yield [Command(f"gpufilter help {name}", number, re.sub(r"  .*", "", text.strip()))
                   for number, text in enumerate(page(name), 1) if text.startswith("  gpufilter ")]


def find_blocks(program):
    blocks = list(in_help(program))
    for directory, directories, names in os.walk(ROOT):
        directories[:] = sorted(name for name in directories if name != "build" and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") and name != "CHANGELOG.md": # the change log names removed options
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    blocks += in_markdown(os.path.relpath(os.path.join(directory, name), ROOT), file.read())
    return [block for block in blocks if block]


# ---- running them --------------------------------------------------------------------------------------

Action = collections.namedtuple("Action", "kind value needs")


class Table:
    FORM = re.compile(r"(?:needs (?P<needs>[^;]+?)(?:; |$))?(?:(?P<kind>run|dry|exit|as|by|skip)(?::? (?P<value>.+))?)?")

    def __init__(self):
        self.rules, self.placeholders, self.used = [], {}, set()
        with open(os.path.join(ROOT, TABLE), encoding="utf-8") as file:
            for number, line in enumerate(file.read().split("\n"), 1):
                pattern, arrow, text = line.partition(" => ")
                placeholder, action = re.fullmatch(r"([A-Z]+) = (.+)", line), self.FORM.fullmatch(text)
                if placeholder:
                    self.placeholders[placeholder[1]] = placeholder[2]
                elif arrow and action:
                    path, _, rest = pattern.rpartition(": ") if re.match(r"[\w./-]+\.\w+: ", pattern) else ("", "", pattern)
                    regex = re.compile(".*".join(re.escape(part) for part in rest.split("*")), re.S)
                    needs = tuple(action["needs"].split(", ")) if action["needs"] else ()
                    self.rules.append((number, path, regex, Action(action["kind"] or "run", action["value"] or "", needs)))
                elif line and not line.startswith("#"):
                    sys.exit(f"{TABLE}:{number}: not PATTERN => ACTION: {line}")

    def find(self, path, text):
        for number, only, regex, action in self.rules:
            if only in ("", path) and regex.fullmatch(text):
                self.used.add(number)
                return action
        return Action("run", "", ())

    def fill(self, text):
        """Replace placeholders by their values: words, or parts of words as in K/N, but not NAME=VALUE."""
        names = "|".join(sorted(self.placeholders, key=len, reverse=True))
        return re.sub(rf"(?<![\w=$.'\"{{-])({names})(?![\w='\"}}])", lambda found: self.placeholders[found[1]], text)


# Run the lines of a block, each stored in a file. Readers who try examples in order remove earlier outputs: an output
# of an earlier line that already exists is removed and the line runs again; original files are kept.
RUN_BLOCK = r"""
remove_outputs() { # ERRORS: succeed if an output was removed
    local name removed=1
    while read -r name; do
        [ -e "$FIXTURES/$name" ] || ! rm "$HERE/$name" || removed=0
    done < <(sed -n 's/^gpufilter: \(.*\): .*; use --force to replace .*/\1/p' "$1")
    return $removed
}
for line in "$@"; do
    . "$line" >/dev/null 2>"$line.err" </dev/null
    code=$?
    while [ $code -eq 1 ] && remove_outputs "$line.err"; do
        . "$line" >/dev/null 2>"$line.err" </dev/null
        code=$?
    done
    echo $code >"$line.code"
done
"""


class Checker:
    def __init__(self, build, fixtures, tree):
        self.build, self.fixtures, self.tree = map(os.path.abspath, (build, fixtures, tree))
        self.program = os.path.join(self.build, "gpufilter")
        self.table = Table()
        devices = subprocess.run([self.program, "devices"], capture_output=True, text=True, check=False).stdout
        self.gpu = bool(re.search(r"^cuda \d", devices, re.M))

    @functools.lru_cache(maxsize=None)
    def has(self, need):
        if need == "a GPU":
            return self.gpu
        if need == "cairo":
            return self.run_block(["gpufilter hist -q --plot p.svg in.png"])[0][0] == 0
        if need.startswith("build/"):
            return os.path.exists(os.path.join(self.build, need[6:]))
        return shutil.which(need, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")

    @functools.lru_cache(maxsize=None)
    def lines_of(self, script):
        """Return the text of a script, or the lines that it runs, as "SCRIPT BUILD list" prints them."""
        name, _, listed = script.partition(" ")
        if listed:
            text = subprocess.run([os.path.join(ROOT, name), self.build, listed], capture_output=True, text=True,
                                  check=True).stdout
        else:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                text = file.read()
        return " ".join(re.sub(r"\\\n\s*", " ", text).split())

    def why_not_run(self, value, text):
        """Return why the script in the table does not run a line; None if it does."""
        script, colon, part = value.partition(": ")
        name, unit = script.partition(" ")[0], re.fullmatch(r"build/tests/(test_\w+)", text)
        if unit:
            found = bool(glob.glob(f"{ROOT}/tests/*/**/{unit[1]}.c", recursive=True))
        elif name == "tests/run" and not colon:
            found = os.access(os.path.join(ROOT, text.removesuffix(" build")), os.X_OK)
        else:
            found = (part if colon else text) in self.lines_of(script)
        return None if found else f"{name} does not run that line"

    MAKE = re.compile(r"(sudo )?make((?: [^&;|<>]*)?)")

    def run_all_dry(self, texts):
        """Run the targets of all make commands dry in one make; if one of them is missing, run_dry finds it."""
        goals = {word for text in texts if (found := self.MAKE.fullmatch(text)) for word in shlex.split(found[2])
                 if "=" not in word}
        self.dry = self.run_block([" ".join(["make -n MAKE=true", *sorted(goals)])])[0][0] == 0

    @functools.lru_cache(maxsize=None)
    def run_dry(self, text):
        if not self.MAKE.fullmatch(text):
            return None, "only a single make command can run dry"
        for name in re.findall(r"\s([A-Z_]+)=", text):
            if subprocess.run(["grep", "-rqw", "--include=Makefile", "--include=*.mk", "--include=*.sh", name, self.tree],
                              check=False).returncode:
                return None, f"no Makefile uses {name}"
        return (0, "") if self.dry else self.run_block([re.sub(r"^(sudo )?make\b", "make -n MAKE=true", text)])[0]

    def run_block(self, texts):
        """Return (exit code, standard error) of each line; the exit code is -1 if the line was not reached or did
        not end."""
        with tempfile.TemporaryDirectory(prefix="gpufilter-docs-", ignore_cleanup_errors=True) as place:
            here, home = os.path.join(place, "here"), os.path.join(place, "home")
            subprocess.run(["cp", "-a", "--sparse=always", self.fixtures, here], check=True)
            os.mkdir(home)
            for name in os.listdir(self.tree):
                os.symlink(os.path.join(self.tree, name), os.path.join(here, name))
            os.symlink(self.build, os.path.join(here, "build"))
            os.symlink(self.program, os.path.join(here, "gpufilter"))
            files = [os.path.join(place, str(i)) for i in range(len(texts))]
            for path, text in zip(files, texts):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            kept = {name: value for name, value in os.environ.items()
                    if not name.startswith(("GF_", "MAKE", "MFLAGS")) and name not in ("BUILD", "SAN", "MPI")}
            # CUDA=0: make does not search for nvcc each time.
            environment = {**kept, "PATH": f"{self.build}:{kept['PATH']}", "LC_ALL": "C", "HOME": home, "TERM": "dumb",
                           "CUDA": "0", "ROOT": ROOT, "HERE": here, "FIXTURES": self.fixtures}
            bash = subprocess.Popen(["bash", "--norc", "-c", RUN_BLOCK, "bash", *files], cwd=here, start_new_session=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    env=environment)
            try:
                bash.wait(BLOCK_TIMEOUT)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(bash.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            bash.wait()
            return [(int(read(path + ".code") or -1), read(path + ".err")) for path in files]

    def check_block(self, block):
        """Return the outcome of each line: (kind, reason, standard error). Kinds: run, dry, by script, skipped, FAIL."""
        outcomes, running = [None] * len(block), {}
        for i, command in enumerate(block):
            text = bare(command.text)
            action = self.table.find(command.path, text)
            missing = [need for need in action.needs if not self.has(need)]
            if missing or action.kind == "skip":
                outcomes[i] = "skipped", f"no {missing[0].removeprefix('a ')}" if missing else action.value, ""
            elif action.kind == "by":
                why = self.why_not_run(action.value, text)
                outcomes[i] = "FAIL" if why else "by script", why, ""
            elif action.kind == "dry":
                code, stderr = self.run_dry(text)
                outcomes[i] = ("dry", None, "") if code == 0 else ("FAIL", "make -n fails", stderr)
            elif action.kind != "as" and "..." in text:
                outcomes[i] = "FAIL", f"it contains ...: {TABLE} must give the command to run instead", ""
            else:
                given = command.text if "\n" in command.text else text
                running[i] = action, action.value if action.kind == "as" else self.table.fill(given)
        results = self.run_block([text for _, text in running.values()]) if running else []
        for (i, (action, text)), (code, stderr) in zip(running.items(), results):
            want = int(action.value.split()[0]) if action.kind == "exit" else 0
            if action.value.endswith("without a GPU"):
                want = 0 if self.gpu else want
                if want and not re.fullmatch(r"gpufilter: .*\n", stderr):
                    code = f"{code}, and standard error is not one line with the reason"
            why = f"`{text}`: exit code {code}, not {want} (-1: did not end)"
            outcomes[i] = "run" if code == want else "FAIL", why, stderr
        return outcomes


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def main():
    checker = Checker(*sys.argv[1:4])
    blocks = find_blocks(checker.program)
    # A block that occurs in two documents runs once, unless the table has rules for one of them.
    alike = {tuple((command.text, checker.table.find(command.path, bare(command.text))) for command in block): block
             for block in reversed(blocks)}
    checker.run_all_dry(text for block in alike.values() for command in block if (text := bare(command.text))
                        if checker.table.find(command.path, text).kind == "dry")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(zip(alike.values(), pool.map(checker.check_block, alike.values())))
    counts, skipped = collections.Counter(), collections.Counter()
    for command, (how, why, stderr) in ((c, o) for block, outcomes in results for c, o in zip(block, outcomes)):
        counts[how] += 1
        if how == "skipped":
            skipped[why] += 1
        if how == "FAIL":
            print(f"FAIL {command.path}:{command.line}: {bare(command.text)}\n     {why}")
            for line in stderr.rstrip().split("\n")[:8] if stderr else []:
                print(f"     | {line}")
    for number, _, regex, _ in checker.table.rules:
        if number not in checker.table.used:
            counts["FAIL"] += 1
            print(f"FAIL {TABLE}:{number}: no document contains such a line: {regex.pattern}")
    for why, count in sorted(skipped.items()):
        print(f"SKIP {count}: command lines of the documents: {why}")
    if sum(counts.values()) < MIN_LINES:
        counts["FAIL"] += 1
        print(f"FAIL only {sum(counts.values())} command lines were found")
    print(", ".join(f"{counts[how]} {how}" for how in ("run", "dry", "by script", "skipped")))
    print(f"{counts['run'] + counts['dry'] + counts['by script']} passed, {counts['FAIL']} failed, {counts['skipped']} skipped")
    sys.exit(counts["FAIL"] != 0)


if __name__ == "__main__":
    main()
