"""Reads tests/doc_commands.txt: what is done with command lines that cannot be run here as they stand.

    PATTERN => ACTION       of the first that matches; * stands for anything. "FILE: PATTERN" is for one document
    NAME = VALUE            a placeholder, such as FILE, and what is put into its place

Actions, each of which "needs PROGRAM, PROGRAM; " may precede ("a GPU" and "cairo" count as programs): without them the line is
skipped, and that is said.

    run                     as it stands
    exit N                  as it stands, and ends with this exit code; "exit N: TEXT" says TEXT on standard error
    exit 3 without a GPU    as it stands: exit code 3 and one line on standard error where there is no GPU, else 0
    as COMMAND              another one, shorter, that does the same
    dry                     "make -n" for make: the target is there, and the variables are known to a Makefile or script
    by SCRIPT               nothing: this script, one of those that tests/run.sh runs, has the same line in it
    by SCRIPT list          ... as "SCRIPT BUILD list" prints them; "by SCRIPT: TEXT" has TEXT in it instead
    skip: WHY               nothing, which is said
    no command              nothing: it names something
"""
import collections
import re

Action = collections.namedtuple("Action", "kind value text needs")
NEED = r"(?:a GPU|[\w+./-]+)"
FORM = re.compile(rf"(?:needs (?P<needs>{NEED}(?:, {NEED})*)(?:; |$))?"
                  r"(?:(?P<kind>run|dry|no command)"
                  r"|(?P<exit>exit) (?P<code>\d+)(?P<gpu> without a GPU)?(?:: (?P<said>.+))?"
                  r"|(?P<as>as) (?P<command>.+)"
                  r"|(?P<by>by) (?P<script>[\w./-]+(?: list)?)(?:: (?P<has>.+))?"
                  r"|(?P<skip>skip): (?P<reason>.+))?")


class Wrong(Exception):
    """What cannot be read, with its line."""


def action_of(text):
    found = FORM.fullmatch(text)
    if not found or not text:
        return None
    needs = tuple(found["needs"].split(", ")) if found["needs"] else ()
    if found["exit"]:
        return Action("no GPU" if found["gpu"] else "exit", int(found["code"]), found["said"] or "", needs)
    if found["skip"]:
        return Action("skip", found["reason"], "", needs)
    if found["as"]:
        return Action("as", found["command"], "", needs)
    if found["by"]:
        return Action("by", found["script"], found["has"] or "", needs)
    return Action(found["kind"] or "run", "", "", needs)


class Rule:
    def __init__(self, number, pattern, action):
        self.number, self.pattern, self.action, self.used = number, pattern, action, False
        self.file, _, rest = pattern.rpartition(": ") if re.match(r"[\w./-]+\.\w+: ", pattern) else ("", "", pattern)
        self.regex = re.compile(".*".join(re.escape(part) for part in rest.split("*")), re.S)

    def matches(self, path, text):
        return self.file in ("", path) and self.regex.fullmatch(text)


class Table:
    def __init__(self, path):
        self.path, self.rules, self.placeholders = path, [], {}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file.read().split("\n"), 1):
                line = line.strip()
                rule, placeholder = line.split(" => "), re.fullmatch(r"([A-Z]+) = (.+)", line)
                if not line or line.startswith("#"):
                    continue
                if placeholder:
                    self.placeholders[placeholder[1]] = placeholder[2]
                elif len(rule) == 2 and action_of(rule[1].strip()):
                    self.rules.append(Rule(number, rule[0].strip(), action_of(rule[1].strip())))
                else:
                    raise Wrong(f"{path}:{number}: not PATTERN => ACTION, with an action of tests/doc_table.py: {line}")

    def find(self, path, text):
        """The action for a line; None if it is to be run as it stands."""
        for rule in self.rules:
            if rule.matches(path, text):
                rule.used = True
                return rule.action
        return None

    def unused(self):
        return [rule for rule in self.rules if not rule.used]

    def fill(self, text):
        """With what stands for its placeholders: words, or parts of words as in K/N, but not NAME=VALUE."""
        names = "|".join(sorted(self.placeholders, key=len, reverse=True))
        if not names:
            return text
        return re.sub(rf"(?<![\w=$.'\"{{-])({names})(?![\w='\"}}])", lambda found: self.placeholders[found[1]], text)
