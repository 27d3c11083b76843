#!/usr/bin/env python3
"""Documents with something wrong in them, and one with nothing: does tests/doc_commands.py tell?

    tests/doc_wrong.py BUILD FIXTURES TREE
"""
import os
import re
import subprocess
import sys
import tempfile

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

# A document, a table, and what must be told of it.
WRONG = [
    ("    gpufilter info in.png\n    gpufilter smooth --radios 2 in.png out.png\n", "",
     r"FAIL it\.md:2: gpufilter smooth --radios 2 in\.png out\.png\n     exit code 2, not 0\n     \| gpufilter: .*--radios"),
    ("\ntext `gpufilter hist absent.png` text\n", "", r"FAIL it\.md:2: gpufilter hist absent\.png\n     exit code 1, not 0\n"
     r"     \| gpufilter: absent\.png: .*"),
    ("    gpufilter compare a.png b.png\n", "", r"FAIL it\.md:1: .*\n     exit code 1, not 0"),
    ("    gpufilter compare a.png a.png\n", "gpufilter compare * => exit 1\n", r"FAIL it\.md:1: .*\n     exit code 0, not 1"),
    ("    gpufilter compare a.png b.png\n", "gpufilter compare * => exit 1: unlike\n", r"FAIL it\.md:1: .*\n     "
     r"standard error does not say: unlike"),
    ("    gpufilter info in.png\n", "gpufilter hist * => exit 1\n", r"FAIL .*table\.txt:1: no document has such a line: "),
    ("`gpufilter smooth ... in.png`\n", "", r"FAIL it\.md:1: .*\n     it has \.\.\. in it"),
    ("    make all-there-is\n", "make * => dry\n", r"FAIL it\.md:1: .*\n     as `make -n all-there-is`: exit code 2, not 0\n"
     r"     \| make: \*\*\* No rule"),
    ("    make bench BENCHES=2\n", "make * => dry\n", r"FAIL it\.md:1: .*\n     no Makefile knows BENCHES"),
    ("    make help && false\n", "make * => dry\n", r"FAIL it\.md:1: .*\n     only a make alone can be run dry"),
    ("    mpirun -n 3 gpufilter\n", "mpirun * => by tests/recipes.sh list\n", r"FAIL it\.md:1: .*\n     tests/recipes\.sh does "
     r"not run that line"),
    ("    tests/absent.sh build\n", "tests/* => by tests/run.sh\n", r"FAIL it\.md:1: .*\n     tests/run\.sh does not run that"),
    ("    make test\n", "make test => by tests/doc_table.py\n", r"FAIL it\.md:1: .*\n     tests/doc_table\.py is not in tests/run"),
    ("    gpufilter smooth -k in.png precious.png\n    gpufilter smooth in.png a.png\n", "", r"FAIL it\.md:2: .*\n     exit code 1,"
     r" not 0\n     \| gpufilter: a\.png: exists already"),
    ("    export A=1\n    exit 0\n    gpufilter info in.png\n", "", r"FAIL it\.md:3: .*\n     an earlier line of this block has "),
    ("    gpufilter smooth --backend cuda in.png\n", "gpufilter * => exit 3 without a GPU\n", r"FAIL it\.md:1: .*\n     exit code 2,"),
    ("    gpufilter info in.png\n", "gpufilter * => sometimes\n", r"FAIL .*table\.txt:1: not PATTERN => ACTION"),
]


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
        if code or not re.search(r"^14 command lines .*: 13 run, 0 run .*, 1 by make .*\n14 passed, 0 failed, 0 skipped$", said, re.M):
            sys.exit(f"the right one, exit code {code}:\n{said}")
        for text, table, wanted in WRONG:
            code, said = run(place, text, table)
            if code != 1 or not re.search(wanted, said) or said.count("FAIL") != 1:
                sys.exit(f"{text}with the table {table!r}, exit code {code}, must say {wanted}:\n{said}")


main()
