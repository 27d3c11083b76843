#!/usr/bin/env python3
"""Find broken links: docs_links.py FILE.md...

A link to a file must name an existing file, relative to the page. A link to #a-heading must name a heading, as
GitHub spells it. Links to the web are not followed. With --pictures, list the pictures that the pages show
instead.
"""
import os
import re
import sys
import urllib.parse


def prose(path):
    """Yield the lines of a page without code."""
    fenced = False
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if re.match(r" *(```|~~~)", line):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                yield line


def anchors(path):
    """Return GitHub's anchors of the headings: lower case, no punctuation, hyphens for spaces, numbers for equal
    names."""
    names, seen = set(), {}
    for line in prose(path):
        names.update(re.findall(r'<a (?:name|id)="([^"]+)"', line))
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if heading:
            text = re.sub(r"!?\[(.*?)\]\(.*?\)", r"\1", heading.group(1)).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            names.add(slug if slug not in seen else "%s-%d" % (slug, seen[slug]))
            seen[slug] = seen.get(slug, 0) + 1
    return names


def links(path):
    """Yield (whether it is a picture, target)."""
    for line in prose(path):
        line = re.sub(r"`[^`]*`", "", line)
        for mark, target in re.findall(r"(!?)\[(?:[^\[\]]|!?\[[^\]]*\]\([^)]*\))*\]\(<?([^)\s>]+)[^)]*\)", line):
            yield bool(mark), target
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)", line):
            yield True, target
        for tag, target in re.findall(r'<(img|a) [^>]*?(?:src|href)="([^"]+)"', line):
            yield tag == "img", target
        for target in re.findall(r"^\[[^\]]+\]: +(\S+)", line):
            yield False, target


def follow(page, target):
    """Return the file and the heading of a link; None for the web."""
    if re.match(r"[a-z]+:", target):
        return None, None
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    return os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page, anchor


def main():
    pictures = "--pictures" in sys.argv
    broken = 0
    for page in sys.argv[1:]:
        if page == "--pictures":
            continue
        for is_picture, target in links(page):
            path, anchor = follow(page, target)
            if pictures:
                if is_picture and path:
                    print(path)
            elif path and (not os.path.exists(path) or
                           anchor and path.endswith(".md") and anchor not in anchors(path)):
                print("%s: broken link: %s" % (page, target))
                broken += 1
    sys.exit(broken > 0)


main()
