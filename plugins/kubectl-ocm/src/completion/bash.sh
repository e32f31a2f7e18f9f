# Completion of kubectl ocm for bash. It is loaded behind kubectl's own completion, if that is loaded, too:
#   source <(kubectl completion bash)
#   source <(kubectl ocm completion bash)

# Makes a text into $quoted, which is one word and nothing but that text wherever it stands behind an open quote, or none.
_kubectl_ocm_quote() {
    local text="$1" at char
    quoted=""
    if [[ -z $2 && -n $text ]]; then
        # Names are joined by commas, which need no backslash where braces have one.
        printf -v quoted %q "$text"
        quoted="${quoted//\\,/,}"
        return
    fi
    for (( at = 0; at < ${#text}; at++ )); do
        char="${text:at:1}"
        case "$2$char" in
            "''") char="'\\''" ;;
            # A history expansion minds no backslash between these quotes.
            '"!') char='"\!"' ;;
            '""' | '"$' | '"`' | '"\') char="\\$char" ;;
        esac
        quoted+="$char"
    done
}

_kubectl_ocm() {
    # bash has split the line at : and = as well, and leaves quotes in its words, so the line is read again: $current becomes
    # the last word without its quotes, $quote the quote that is open in it, and $head what stands before the part of it that
    # bash replaces.
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n'
    local words=() current="" head="" before="" quote="" begun="" first=1 at char
    for (( at = 0; at < ${#line}; at++ )); do
        char="${line:at:1}"
        if [[ -n $quote && $char == "$quote" ]]; then
            quote="" head="$before"
        elif [[ $quote == \' ]]; then
            current+="$char"
        elif [[ $char == \\ && ( -z $quote || ${line:at+1:1} == [\$\`\"\\] ) ]]; then
            begun=1
            (( ++at ))
            current+="${line:at:1}"
        elif [[ -n $quote ]]; then
            current+="$char"
        elif [[ $char == [\'\"] ]]; then
            begun=1 quote="$char" before="$head" head="$current"
        elif [[ $char == [[:space:]] ]]; then
            [[ -n $begun ]] && words+=("$current")
            current="" head="" begun=""
        else
            # bash replaces what stands behind the last : or =, and an @ with what stands behind it.
            [[ $COMP_WORDBREAKS == *"$char"* && $char == @ ]] && head="$current"
            begun=1
            current+="$char"
            [[ $COMP_WORDBREAKS == *"$char"* && $char != @ ]] && head="$current"
        fi
    done
    [[ ${words[0]##*/} == kubectl ]] && first=2

    # What stands before = in a flag is not repeated by the answer.
    local flag=""
    [[ $current == -*=* ]] && flag="${current%%=*}="

    COMPREPLY=()
    local candidate quoted directive=0
    while IFS= read -r candidate; do
        case "$candidate" in
            :[0-9]*) directive="${candidate#:}" ;;
            ?*)
                candidate="$flag${candidate%%$'\t'*}"
                [[ $candidate == "$current"* ]] || continue
                _kubectl_ocm_quote "${candidate#"$head"}" "$quote"
                COMPREPLY+=("$quoted")
                ;;
        esac
    done < <(kubectl-ocm __complete "${words[@]:first}" "$current" 2>/dev/null)

    # Directives are bits: 2 is no blank behind the candidate, 4 is no files. compopt came with bash 4.
    if type compopt >/dev/null 2>&1; then
        (( directive & 2 )) && compopt -o nospace
        (( directive & 4 )) && compopt +o default
    fi
    return 0
}

_kubectl_or_ocm() {
    if [[ ${COMP_WORDS[1]} == ocm && $COMP_CWORD -gt 1 ]]; then
        _kubectl_ocm
    elif declare -F __start_kubectl >/dev/null; then
        __start_kubectl "$@"
    fi
}

complete -o default -F _kubectl_ocm kubectl-ocm
complete -o default -F _kubectl_or_ocm kubectl
