#!/usr/bin/env python3
"""The terminal of docs/terminal.py: what its screen shows, worked out by hand, and a shell in it."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs"))
import terminal  # noqa: E402

SHOWS = [
    (b"one\r\ntwo", ["one", "two"]),
    (b"one\rt", ["tne"]),                                             # a return erases nothing
    (b"one\r\x1b[Kt", ["t"]),
    (b"[###-]\r\x1b[K[####]\r\x1b[Kdone\r\n", ["done"]),              # a bar
    (b"abc\b\bx", ["axc"]),
    (b"abc\x1b[2Dx", ["axc"]),
    (b"abc\r\x1b[2Cx", ["abx"]),
    (b"abc\r\x1b[1Px", ["xc"]),                                       # bc, and x in the place of b
    (b"abc\r\x1b[@x", ["xabc"]),
    (b"abc\x1b[1Kd", ["   d"]),
    (b"one\r\ntwo\x1b[A\rx\x1b[J", ["x"]),
    (b"a\tb", ["a       b"]),
    (b"\x1b[1;31mred\x1b[0m \x1b[?2004h\x1b]0;a title\x07end", ["red end"]),
    ("▏█".encode(), ["▏█"]),
    (b"x" * 80 + b"\r\ny", ["x" * 80, "y"]),                          # full, but nothing on the next line yet
    (b"x" * 81, ["x" * 80, "x"]),
    (b"\r\n".join(b"%d" % i for i in range(30)), [str(i) for i in range(30)]),
]


def main():
    wrong = []
    for data, lines in SHOWS:
        for pieces in ([data], [data[i:i + 1] for i in range(len(data))]):
            screen = terminal.Terminal()
            for piece in pieces:
                screen.feed(piece)
            if screen.text() != lines:
                wrong.append(f"{data!r} in {len(pieces)} pieces shows {screen.text()}")
            if bool(screen.wrapped) != (len(data) == 81):
                wrong.append(f"{data!r}: wrapped lines {screen.wrapped}")
    screen = terminal.Terminal()
    screen.feed(b"\r\n" * 30 + b"a\x1b]7;3\x07")
    if (len(screen.above), screen.marks, screen.line()) != (7, ["7;3"], "a"):
        wrong.append(f"after 30 lines {len(screen.above)} are gone, marks {screen.marks}, the line {screen.line()}")
    for data in (b"\x1b[5n", b"\x1b[3;4H", b"\x0e"):
        try:
            terminal.Terminal().feed(data)
            wrong.append(f"{data!r} is taken")
        except ValueError:
            pass
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "here")
        os.mkdir(folder)
        session = terminal.Session(folder, {"PATH": os.environ["PATH"], "HOME": place, "LC_ALL": "C"}, "word=begun")
        seen = []
        ran = [session.run("echo $word; stty size; (exit 7)"), session.run("cd ..; ls -d here"),
               session.run("printf 'half\\rwhole\\n'", lambda: seen.append(session.terminal.text()[-1]))]
        typed = session.keys("echo h\t", "here/")[-1], session.keys("\x15", r"\$")[-1]
        session.end()
    wanted = [(7, ["begun", "24 80"]), (0, ["here"]), (0, ["whole"])]
    if ran != wanted or "half" not in seen or typed != ("$ echo here/", "$"):
        wrong.append(f"the shell: {ran}, seen {seen}, typed {typed}")
    sys.exit("\n".join(wrong) if wrong else 0)


main()
