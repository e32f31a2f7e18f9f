// The module whose schemas the contract tests compare ours with. Nothing is built from it.
module upstream-api

go 1.25.0

require open-cluster-management.io/api v1.3.0
