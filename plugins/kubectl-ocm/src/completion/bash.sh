# Completion of kubectl ocm for bash. It is loaded behind kubectl's own completion, if that is loaded, too:
#   source <(kubectl completion bash)
#   source <(kubectl ocm completion bash)

_kubectl_ocm() {
    # bash has split the line at : and = as well, so it is split again.
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n'
    local words=() current="" first=1
    read -ra words <<<"$line"
    if [[ $line != *[[:space:]] ]]; then
        current="${words[${#words[@]}-1]}"
        unset "words[${#words[@]}-1]"
    fi
    [[ ${words[0]##*/} == kubectl ]] && first=2

    # What stands before = in a flag is not repeated, and bash replaces only what stands behind the last : or =.
    local typed="$current" flag="" head=""
    if [[ $current == -*=* ]]; then
        typed="${current#*=}"
        [[ $COMP_WORDBREAKS == *=* ]] || flag="${current%%=*}="
    fi
    [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]] && head="${typed%:*}:"

    COMPREPLY=()
    local candidate directive=0
    while IFS= read -r candidate; do
        case "$candidate" in
            :[0-9]*) directive="${candidate#:}" ;;
            ?*)
                candidate="${candidate%%$'\t'*}"
                [[ $candidate == "$typed"* ]] && COMPREPLY+=("$flag${candidate#"$head"}")
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
