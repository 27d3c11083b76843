# Print the options in `gpufilter help NAME`, one per line, with fields separated by tabs: the heading ("-r, --radius R"),
# the name, the letter, the text, the range, the allowed words (separated by a comma and a space) and the default.
function flush(    values, part, parts, count, i, range, words, fallback) {
    if (name == "")
        return
    if (match(text, / \([^()]*\)$/)) {
        values = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, 1, RSTART - 1)
        count = split(values, parts, "; ")
        for (i = 1; i <= count; i++) {
            part = parts[i]
            if (sub(/^default: /, "", part))
                fallback = part
            else if (sub(/^range: /, "", part))
                range = part
            else
                words = part
        }
    }
    print head "\t" name "\t" letter "\t" text "\t" range "\t" words "\t" fallback
    name = ""
}
/^  (-.,|   ) --/ {
    flush()
    head = substr($0, 3)
    if (match(substr(head, 5), /  +/)) {
        text = substr(head, 4 + RSTART + RLENGTH)
        head = substr(head, 1, 4 + RSTART - 1)
    } else {
        text = ""
    }
    letter = head ~ /^-/ ? substr(head, 2, 1) : ""
    sub(/^ +/, "", head)
    match(head, /--[a-z0-9-]+/)
    name = substr(head, RSTART + 2, RLENGTH - 2)
    next
}
name != "" && /^          / {
    sub(/^ +/, "")
    text = text (text == "" ? "" : " ") $0
    next
}
{ flush() }
END { flush() }
