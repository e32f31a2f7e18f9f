# Completion of kubectl-ocm for PowerShell. For `kubectl ocm`, kubectl's own completion asks kubectl_complete-ocm.exe.

Register-ArgumentCompleter -Native -CommandName 'kubectl-ocm' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        Select-Object -Skip 1 |
        ForEach-Object { $_.Extent.Text })
    # Older versions do not pass an empty argument, so two quotes stand for it.
    $current = if ($wordToComplete) { "$wordToComplete" } else { '""' }

    # What stands before = in a flag is not repeated by the answer.
    $flag = if ($current -match '^(-[^=]*=)') { $Matches[1] } else { '' }

    & kubectl-ocm __complete @words $current 2>$null |
        Where-Object { $_ -and $_ -notmatch '^:\d+$' } |
        ForEach-Object {
            $value, $about = $_ -split "`t", 2
            if (-not $about) { $about = $value }
            [System.Management.Automation.CompletionResult]::new("$flag$value", $value, 'ParameterValue', $about)
        }
}
