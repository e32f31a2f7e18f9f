#!/bin/sh
# kubectl's completion runs this for `kubectl ocm`; the words that were typed are its arguments.
exec kubectl-ocm __complete "$@"
