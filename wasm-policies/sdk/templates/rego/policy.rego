# Clusters are let in under names that begin as they must.
#
# input is a request of the contract, data.settings are the settings. decision is a decision of the contract; where it
# is undefined, the policy has no opinion. What may be answered stands in docs/policies/contract.md of kubectl-ocm.
package policy

default prefixes := []

prefixes := data.settings.prefixes

fits if count(prefixes) == 0

fits if {
	some prefix in prefixes
	startswith(input.cluster.name, prefix)
}

decision := {"verdict": "allow"} if {
	input.cluster
	fits
}

decision := {
	"verdict": "deny",
	"reasons": [{
		"code": "NamePrefix",
		"message": concat("", ["the name must begin with one of: ", concat(", ", prefixes)]),
		"field": "metadata.name",
	}],
} if {
	input.cluster
	not fits
}
