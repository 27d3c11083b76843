#!/usr/bin/env python3
"""Documents with something wrong in them, and one with nothing: does tests/doc_commands.py tell?

    tests/doc_wrong.py BUILD FIXTURES TREE
"""
import os
import re
import subprocess
import sys
import tempfile

import doc_find

HERE = os.path.dirname(os.path.abspath(__file__))

RIGHT = """# Right

Text with `gpufilter smooth`, which is a name, `gpufilter --version`, and a line that goes
on: `gpufilter hist
in.png`.

    gpufilter smooth in.png out.png      # the same output twice: a reader would take the first away
    gpufilter smooth -k in.png out.png
    gpufilter hist out.png | head -n 3
    name=made; cp in.png $name.png
    gpufilter info $name.png \\
        out.png

* a list, with text indented as code would be
      and that goes on, and says make nothing

  ```sh
  # a comment
  for i in 1 2; do
      cat >$i.txt <<END
  make this
  END
  done
  cat 1.txt 2.txt
  ```

```c
make(c);
```

    P[i] = I[i] * g

```console
$ gpufilter compare a.png b.png
what it prints
$ gpufilter help | \\
> head -n 1
```

| what | command |
|---|---|
| `this` | `true`, `make help` |
| in a cell | `gpufilter info --json FILE` |
"""
RIGHT_TABLE = """FILE = in.png
gpufilter compare * => exit 1
make help => dry
"""

# A document, a table, what must be told of it, and what follows that.
WRONG = [
    ("    gpufilter info in.png\n    gpufilter smooth --radios 2 in.png out.png\n", "",
     "it.md:2: gpufilter smooth --radios 2 in.png out.png", "exit code 2, not 0\n     | gpufilter: --radios"),
    ("\ntext `gpufilter hist absent.png` text\n", "",
     "it.md:2: gpufilter hist absent.png", "exit code 1, not 0\n     | gpufilter: absent.png: "),
    ("    gpufilter compare a.png b.png\n", "", "it.md:1: ", "exit code 1, not 0"),
    ("    gpufilter compare a.png a.png\n", "gpufilter compare * => exit 1\n", "it.md:1: ", "exit code 0, not 1"),
    ("    gpufilter compare a.png b.png\n", "gpufilter compare * => exit 1: unlike\n",
     "it.md:1: ", "standard error does not say: unlike"),
    ("    gpufilter info in.png\n", "gpufilter hist * => exit 1\n", "table.txt:1: no document has such a line: ", ""),
    ("    gpufilter info in.png\n", "it.txt: * => exit 1\n", "table.txt:1: no document has such a line: ", ""),
    ("    gpufilter info in.png\n", "gpufilter * => sometimes\n", "table.txt:1: not PATTERN => ACTION", ""),
    ("`gpufilter smooth ... in.png`\n", "", "it.md:1: ", "it has ... in it"),
    ("    make all-there-is\n", "make * => dry\n",
     "it.md:1: ", "as `make -n all-there-is`: exit code 2, not 0\n     | make: *** No rule"),
    ("    make bench BENCHES=2\n", "make * => dry\n", "it.md:1: ", "no Makefile knows BENCHES"),
    ("    make help && false\n", "make * => dry\n", "it.md:1: ", "only a make alone can be run dry"),
    ("    mpirun -n 3 gpufilter\n", "mpirun * => by tests/recipes.sh list\n",
     "it.md:1: ", "tests/recipes.sh does not run that line"),
    ("    tests/absent.sh build\n", "tests/* => by tests/run.sh\n", "it.md:1: ", "tests/run.sh does not run that line"),
    ("    make test\n", "make test => by tests/doc_table.py\n", "it.md:1: ", "tests/doc_table.py is not in tests/run.sh"),
    ("    gpufilter smooth in.png new.png\n    gpufilter smooth in.png a.png\n", "",
     "it.md:2: ", "exit code 1, not 0\n     | gpufilter: a.png: exists already"),
    ("    export A=1\n    exit 0\n    gpufilter info in.png\n", "", "it.md:3: ", "an earlier line of this block has ended"),
    ("    gpufilter smooth --backend cuda in.png\n", "gpufilter * => exit 3 without a GPU\n",
     "it.md:1: ", "exit code 2, not "),
]

# The same lines in both languages of manual pages; what is in the synopsis is no command.
PAGES = [""".Sh SYNOPSIS
.Bd -literal
gpufilter smooth IN OUT
.Ed
.Sh EXAMPLES
.Bd -literal -offset indent
gpufilter smooth \\-k *.png \\-\\-name \\(aq{stem}\\(aq
echo \\(dqa\\e\\(dq
.Ed
""", """.SH "SYNOPSIS"
.nf
gpufilter smooth IN OUT
.fi
.SH EXAMPLES
.EX
  gpufilter \\fBsmooth\\fP \\-k *.png \\-\\-name \\(aq{stem}\\(aq
.PP
  echo \\(dqa\\(rs\\(dq
.EE
"""]
PAGES_SAY = ["gpufilter smooth -k *.png --name '{stem}'", 'echo "a\\"']


def run(place, text, table):
    for name, content in (("docs/it.md", text), ("table.txt", table)):
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(content)
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "doc_commands.py"), *sys.argv[1:], "--docs",
                           os.path.join(place, "docs"), "--table", os.path.join(place, "table.txt")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def main():
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(os.path.join(place, "docs"))
        code, said = run(place, RIGHT, RIGHT_TABLE)
        wanted = r"^14 command lines .*: 13 run, 0 run .*, 1 by make .*\n14 passed, 0 failed, 0 skipped$"
        if code or not re.search(wanted, said, re.M):
            sys.exit(f"the right one, exit code {code}:\n{said}")
        for text, table, where, why in WRONG:
            code, said = run(place, text, table)
            wanted = "FAIL .*" + re.escape(where) + (".*\n     (as .*: )?" + re.escape(why) if why else "")
            if code != 1 or not re.search(wanted, said) or said.count("FAIL") != 1:
                sys.exit(f"{text}with the table {table!r}, exit code {code}, must say {wanted}:\n{said}")
    for page in PAGES:
        found = [command.text for block in doc_find.in_page("it.1", page) for command in block]
        if found != PAGES_SAY:
            sys.exit(f"{page} gives {found}")


main()
