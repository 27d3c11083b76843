#!/usr/bin/env bash
# Shell completion: tests/system/completion.sh BUILD. bash, zsh and fish must offer every option and choice in the
# program's help, and files with special characters in their names. Missing shells are skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
type=$PWD/tests/support/tools/type.py
export LC_ALL=C
mkdir "$work/here" "$work/here/my dir" "$work/here/photos" "$work/home" "$work/bin"
(cd "$work/here" && touch 'in put.png' in.png a:b.png "it's.pgm" 'x=y.PNG' notes.txt scan.data 'my dir/q.png')
touch "$work/home/at home.png"

# A fake of the program. It appends its arguments to a file, one call per line.
cat >"$work/bin/gpufilter" <<END
#!/bin/sh
printf '[%s]' "\$@" >>"$work/called"
echo >>"$work/called"
END
chmod +x "$work/bin/gpufilter"

listed() { "$build/gpufilter" help | awk -v "list=^($1):" '$0 ~ list {on = 1; next} /^$/ {on = 0} on {print $1}'; }
mapfile -t names < <(listed 'Filters|Commands')
mapfile -t filters < <(listed Filters)
for name in "${names[@]}"; do
    "$build/gpufilter" help "$name" | awk -f tests/support/tools/help_options.awk | tr '\t' '\037' >"$work/options.$name"
done

# ---- expected completions -------------------------------------------------------------------------

# All lines are sent to one session of the shell; the answers are then looked up.
declare -A answers=() # by line: words, each with a newline
look() { # LINE: set `reply` to the completions that $shell offers at its end
    reply=${answers[$1]-}
    [ "$shell" != none ] || printf '%s\n' "$1" >>"$work/lines"
}
offered() { look "$1" && printf %s "$reply"; } # LINE: print them
offers() { diff <(printf '%s\n' "${@:2}" | sort) <(offered "$1" | sort); } # LINE EXPECTED...
offers_nothing() { ! offered "$1" | grep .; }                             # LINE
# Exactly the long and the short options.
offers_options() { # NAME
    diff <(while IFS=$'\x1f' read -r _ name short _; do printf '%s\n' "--$name" ${short:+"-$short"}; done \
        <"$work/options.$1" | sort) <(offered "gpufilter $1 -" | sort)
}
# Each option with its help text.
describes_options() { # NAME
    diff <(while IFS=$'\x1f' read -r _ name _ text _; do printf '%s\037%s\n' "--$name" "$text"; done <"$work/options.$1" | sort) \
        <(awk -v line="gpufilter $1 -" -F '\037' '$1 == line && $2 ~ /^--/ {print $2 FS $3}' "$work/answers" | sort)
}
# Choices after --name, --name= and the short option, and lists of choices. Numeric options offer nothing.
offers_values() { # NAME
    local name short range words line word
    : >"$work/want" >"$work/got"
    while IFS=$'\x1f' read -r _ name short _ range words _; do
        [ -n "$words$range" ] || continue
        for line in "--$name " ${words:+"--$name="} ${words:+${short:+"-$short "}}; do
            for word in ${words//,/ }; do printf '%s%s\n' "$line" "$word"; done >>"$work/want"
            look "gpufilter $1 $line"
            while IFS= read -r word; do
                [ -z "$word" ] || [[ -n $words && $word == *,* ]] || printf '%s%s\n' "$line" "${word##--*=}"
            done <<<"$reply" >>"$work/got"
        done
    done <"$work/options.$1"
    diff <(sort "$work/want") <(sort "$work/got")
}
check_answers() { # HOW
    local shell=$2 images=('a:b.png' 'in put.png' 'in.png' "it's.pgm" 'x=y.PNG') directories=('my dir/' 'photos/')
    local how=$1 name
    check "$how: names" offers 'gpufilter ' "${names[@]}" help version
    check "$how: help" offers 'gpufilter help ' "${names[@]}"
    check "$how: nothing after help NAME" offers_nothing 'gpufilter help smooth '
    check "$how: options without a name" offers 'gpufilter -' --help --version -h -V
    for name in "${names[@]}"; do
        check "$how: options of $name" offers_options "$name"
        check "$how: values of $name" offers_values "$name"
        [[ $how = bash* ]] || check "$how: descriptions of the options of $name" describes_options "$name"
    done
    check "$how: part of a name" offers 'gpufilter smooth --ax' --axis
    check "$how: a list" offers 'gpufilter smooth --stages ' "${lists[@]}"
    check "$how: next entries of a list" offers 'gpufilter smooth --stages enhance,' "${lists[@]:1:3}"
    check "$how: the last entry of a list" offers 'gpufilter smooth --stages blur,' blur,smooth
    check "$how: nothing after a complete list" offers_nothing 'gpufilter smooth --stages smooth,'
    check "$how: operands" offers 'gpufilter smooth ' "${images[@]}" "${directories[@]}"
    check "$how: operands after options" offers 'gpufilter smooth -r 3 -fk --axis x -O out ' "${images[@]}" "${directories[@]}"
    check "$how: operands of a command" offers 'gpufilter info in.png ' "${images[@]}" "${directories[@]}"
    check "$how: a file without an image extension" offers 'gpufilter smooth sc' scan.data
    check "$how: images for an option" offers 'gpufilter hist --mask ' "${images[@]}" "${directories[@]}"
    check "$how: files for an option" offers 'gpufilter hist -o ' "${images[@]}" "${directories[@]}" notes.txt scan.data
    check "$how: directories for an option" offers 'gpufilter smooth --out-dir ' "${directories[@]}"
    check "$how: a short option in a group" offers 'gpufilter smooth -fva ' x y xy
    check "$how: no options after --" offers_nothing 'gpufilter smooth -- --'
    check "$how: files after --" offers 'gpufilter smooth -- ' "${images[@]}" "${directories[@]}"
    check "$how: names of filters" offers 'gpufilter bench ' "${filters[@]}"
    if [ "$how" = fish ]; then # which offers options only after a hyphen
        check "$how: no operands" offers_nothing 'gpufilter devices '
    else
        check "$how: options of a command without operands" diff <(offered 'gpufilter devices -') <(offered 'gpufilter devices ')
    fi
    check "$how: steps" offers 'gpufilter run in.png ! ' "${filters[@]}" write depth linear open close input
    check "$how: part of a step" offers 'gpufilter run in.png ! median ! gauss' gaussian
    check "$how: options of a step" offers 'gpufilter run in.png ! median ! median -' --radius -r --edge -e
    check "$how: values of a step" offers 'gpufilter run in.png ! median ! write out.png --compression ' \
        fast balanced small none
    check "$how: operands of a step" offers 'gpufilter run in.png ! compare ' "${images[@]}" "${directories[@]}"
    check "$how: operands before steps" offers 'gpufilter run ' "${images[@]}" "${directories[@]}"
    check "$how: nothing for unknown names" offers_nothing 'gpufilter nothing -'
}
lists=('enhance' 'enhance,blur' 'enhance,blur,smooth' 'enhance,smooth' 'blur' 'blur,smooth' 'smooth')
check_answers '' none >/dev/null
passed=0 failed=0
check_shell() { # HOW ASK
    local line word
    sort -u "$work/lines" | "$2" >"$work/answers" 2>"$work/complaints"
    answers=()
    while IFS=$'\x1f' read -r line word _; do answers[$line]+=$word$'\n'; done <"$work/answers"
    check "$1: no complaints" cmp /dev/null "$work/complaints"
    check_answers "$1" "$2"
}

# Lines as typed, with Tab and Enter, and the arguments that the program then receives.
cat >"$work/typed" <<'END'
gpufilter sm	--keep-b	--ax	xy in\ p	out.png
gpufilter smooth --out-dir=my	 in.	
gpufilter smooth "in p	
gpufilter smooth 'in p	
gpufilter smooth a	
gpufilter smooth it	
gpufilter smooth "it's.	
gpufilter hist "my	q	
gpufilter smooth ~/at	
gpufilter hist --sync=al	in.	
gpufilter hist -x3 -C lu	in.	
gpufilter smooth --stages bl	,s	 -- in.	
gpufilter dot in.	in\ 	
exit
END
cat >"$work/expected" <<END
[smooth][--keep-brightness][--axis][xy][in put.png][out.png]
[smooth][--out-dir=my dir/][in.png]
[smooth][in put.png]
[smooth][in put.png]
[smooth][a:b.png]
[smooth][it's.pgm]
[smooth][it's.pgm]
[hist][my dir/q.png]
[smooth][$work/home/at home.png]
[hist][--sync=always][in.png]
[hist][-x3][-C][luma][in.png]
[smooth][--stages][blur,smooth][--][in.png]
[dot][in.png][in put.png]
END
in_terminal() { # SHELL...: type the text from standard input
    (cd "$work/here" && PATH=$work/bin:$PATH HOME=$work/home "$type" "$@")
}
typing() { # EXPECTED SHELL...
    : >"$work/called"
    sed 's/$/\r/' "$work/typed" | in_terminal "${@:2}" | tail -n 20
    diff "$1" "$work/called"
}
has_terminal=$(python3 -c 'import pty, os; os.waitstatus_to_exitcode' 2>/dev/null && echo yes)

# ---- bash -----------------------------------------------------------------------------------------

check "bash parses the completion" bash -n "$build/completions/gpufilter.bash"
if command -v shellcheck >/dev/null 2>&1; then
    check "shellcheck reports nothing" shellcheck "$build/completions/gpufilter.bash"
fi

# Call the function as bash does; bash also splits lines at "=" and ":".
cat >"$work/ask.bash" <<'END'
source "$before"
source "$completion"
cut() { # LINE: set COMP_WORDS; its last entry is empty after a blank
    local rest=$1
    COMP_WORDS=()
    while [[ $rest =~ ^\ *([=:]+|[^=:\ ]+)(.*)$ ]]; do
        COMP_WORDS+=("${BASH_REMATCH[1]}")
        rest=${BASH_REMATCH[2]}
    done
    [[ $1 != *\  ]] || COMP_WORDS+=('')
}
registered=$(complete -p gpufilter)
[[ $registered =~ -F\ ([a-z_]+) ]] || exit
function=${BASH_REMATCH[1]}
while IFS= read -r line; do
    cut "$line"
    COMP_LINE=$line COMP_POINT=${#line} COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    "$function" gpufilter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    for word in "${COMPREPLY[@]}"; do
        [[ $line == *\  && -d $word ]] && word=$word/ # bash appends a slash to directories
        printf '%s\037%s\n' "$line" "$word"
    done
done
END
ask_bash() {
    (cd "$work/here" && before=$before completion=$build/completions/gpufilter.bash bash --norc --noprofile "$work/ask.bash")
}
type_into_bash() { # [LOAD]: additional lines of its startup file
    printf '%s\n' "source '$before'" "PS1='READY\\#>'" "bind 'set bell-style none'" "$@" >"$work/rc"
    typing "$work/expected" bash --noprofile --rcfile "$work/rc" -i
}
check_bash() { # HOW BEFORE
    before=$2
    check_shell "$1" ask_bash
    if [ -n "$has_terminal" ]; then
        check "$1: typed" type_into_bash "source '$build/completions/gpufilter.bash'"
        # shellcheck disable=SC2016 # for the other shell
        check "$1: typed, without = and : in COMP_WORDBREAKS" type_into_bash \
            "source '$build/completions/gpufilter.bash'" 'COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}'
    else
        skip 2 "completion: no python3 with pty"
    fi
}
check_bash bash /dev/null
package=/usr/share/bash-completion/bash_completion
if [ -r $package ]; then
    check_bash "bash with bash-completion" $package
    mkdir -p "$work/home/.local/share/bash-completion/completions"
    cp "$build/completions/gpufilter.bash" "$work/home/.local/share/bash-completion/completions/"
    [ -z "$has_terminal" ] || check "bash: loaded on demand by bash-completion" type_into_bash
else
    skip 1 "completion: no package bash-completion"
fi

# ---- zsh ------------------------------------------------------------------------------------------

# Lists appear below the line: " -- " precedes a description, and a backslash precedes blanks in names. No command
# runs in between, because the terminal may drop input that is typed ahead.
ask_zsh() {
    (sed 's/$/\x14\x07/' | tr -d '\n' && printf '\004') | in_terminal zsh -d -i | tr -d '\r' | sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g' |
        awk 'sub(/^.*@@/, "") {for (i = 0; i < count; i++) print $0 "\037" words[i]; count = 0; next}
            /READY/ {next}
            {
                what = match($0, / -- /) ? substr($0, RSTART + 4) : ""
                sub(/ +-- .*/, "")
                sub(/ +$/, "", what)
                fields = split($0, field, /  +/)
                for (i = 1; i <= fields; i++)
                    if (field[i] != "") {
                        gsub(/\\/, "", field[i])
                        words[count++] = field[i] "\037" what
                    }
            }'
}
if command -v zsh >/dev/null 2>&1; then
    check "zsh parses the completion" zsh -n "$build/completions/_gpufilter"
fi
if command -v zsh >/dev/null 2>&1 && [ -n "$has_terminal" ]; then
    export ZDOTDIR=$work/zsh
    mkdir "$ZDOTDIR"
    cat >"$ZDOTDIR/.zshrc" <<END
PS1='READY%!>'
fpath=('$build/completions' \$fpath)
autoload -U compinit
compinit -D -u
bindkey '^T' list-choices
show-line() { zle -I; print -r -- "@@\$BUFFER"; BUFFER= }
zle -N show-line
bindkey '^G' show-line
LISTMAX=100000
unsetopt beep list_beep prompt_sp prompt_cr always_last_prompt
END
    check_shell zsh ask_zsh
    sed 's/\[--axis\]\[xy\]/[--axis=xy]/; s|dir/\]\[in|dir][in|' "$work/expected" >"$work/expected.zsh"
    check "zsh: typed" typing "$work/expected.zsh" zsh -d -i
else
    skip 1 "completion: no zsh, or no python3 with pty"
fi

# ---- fish -----------------------------------------------------------------------------------------

ask_fish() {
    (cd "$work/here" && HOME=$work/home PATH=$work/bin:$PATH fish -c 'while read -l line
            for word in (complete -C $line)
                printf "%s\037%s\n" $line (string replace \t \x1f -- $word)
            end
        end')
}
if command -v fish >/dev/null 2>&1; then
    check "fish parses the completion" fish -n "$build/completions/gpufilter.fish"
    export XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/home/.local/share
    mkdir -p "$XDG_CONFIG_HOME/fish/completions"
    cp "$build/completions/gpufilter.fish" "$XDG_CONFIG_HOME/fish/completions/"
    check_shell fish ask_fish
else
    skip 1 "completion: no fish"
fi

check_summary
