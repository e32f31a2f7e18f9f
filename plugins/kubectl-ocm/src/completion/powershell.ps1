# Completion of kubectl-ocm for PowerShell. For `kubectl ocm`, kubectl's own completion asks kubectl_complete-ocm.exe.

Register-ArgumentCompleter -Native -CommandName 'kubectl-ocm' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        Select-Object -Skip 1 |
        ForEach-Object {
            # Of a word in quotes, what it means.
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
        })
    # Older versions do not pass an empty argument, so two quotes stand for it.
    $typed = "$wordToComplete".TrimStart("'", '"')
    $current = if ($typed) { $typed } else { '""' }

    # What stands before = in a flag is not repeated by the answer.
    $flag = if ($current -match '^(-[^=]*=)') { $Matches[1] } else { '' }

    & kubectl-ocm __complete @words $current 2>$null |
        Where-Object { $_ -and $_ -notmatch '^:\d+$' } |
        ForEach-Object {
            $value, $about = $_ -split "`t", 2
            if (-not $about) { $about = $value }
            # PowerShell inserts it as it is: what could be more than one word of text goes between quotes.
            $word = $value
            if ($value -match '[^A-Za-z0-9_./:=+%\\-]') {
                $word = "'" + [System.Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($value) + "'"
            }
            [System.Management.Automation.CompletionResult]::new("$flag$word", $value, 'ParameterValue', $about)
        }
}
