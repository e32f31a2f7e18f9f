# Completion of kubectl ocm for fish:
#   kubectl ocm completion fish > ~/.config/fish/completions/kubectl-ocm.fish

function __kubectl_ocm_candidates
    # The words before the one that is being typed, without the program, which is kubectl-ocm or kubectl ocm.
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    if string match -qr '(^|/)kubectl$' -- $words[1]
        set -e words[1]
    end
    set -e words[1]

    # fish replaces the whole word, so what stands before = in a flag is put in front of its values.
    set -l flag (string match -r -- '^-[^=]*=' $current)
    set -l directive 0
    for line in (kubectl-ocm __complete $words "$current" 2>/dev/null)
        if string match -qr '^:\d+$' -- $line
            set directive (string sub -s 2 -- $line)
        else
            printf '%s\n' "$flag$line"
        end
    end
    # Directives are bits: 4 is no files.
    if test (math "floor($directive / 4) % 2") -eq 0
        __fish_complete_path "$current"
    end
end

function __kubectl_ocm_is_meant
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = ocm
end

complete -c kubectl-ocm -f -a '(__kubectl_ocm_candidates)'
complete -c kubectl -n __kubectl_ocm_is_meant -f -a '(__kubectl_ocm_candidates)'
