#compdef kubectl-ocm
# Completion of kubectl ocm for zsh. It is loaded behind compinit, and behind kubectl's own completion, if that is
# loaded, too:
#   source <(kubectl completion zsh)
#   source <(kubectl ocm completion zsh)

_kubectl_ocm() {
    local -a before answer candidates
    local line first=2 directive=0
    [[ ${words[1]:t} == kubectl ]] && first=3
    (( CURRENT > first )) && before=("${(@Q)words[first,CURRENT-1]}")
    answer=("${(@f)$(kubectl-ocm __complete "${before[@]}" "${(Q)words[CURRENT]}" 2>/dev/null)}")
    for line in "${answer[@]}"; do
        case $line in
            :<->) directive=${line#:} ;;
            ?*)
                # A colon parts a candidate from its description; zsh quotes what it inserts.
                line=${line//\\/\\\\}
                line=${line//:/\\:}
                candidates+=("${line/$'\t'/:}")
                ;;
        esac
    done

    # What stands before = in a flag is not repeated.
    [[ ${words[CURRENT]} == -*=* ]] && compset -P '*='
    local -a options
    (( directive & 2 )) && options=(-S '')
    if (( $#candidates )); then
        _describe -t kubectl-ocm 'kubectl ocm' candidates "${options[@]}"
    elif (( ! (directive & 4) )); then
        _files
    fi
}

_kubectl_or_ocm() {
    if [[ ${words[2]} == ocm ]] && (( CURRENT > 2 )); then
        _kubectl_ocm
    elif (( $+functions[_kubectl] )); then
        _kubectl "$@"
    fi
}

compdef _kubectl_ocm kubectl-ocm
compdef _kubectl_or_ocm kubectl
