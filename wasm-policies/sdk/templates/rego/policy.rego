# Clusters are let in under names that begin as they must.
#
# input is a request of the contract, data.settings are the settings. decision is a decision of the contract; where it
# is undefined, that is an error, and an error lets nobody in. What may be answered stands in docs/policies/contract.md of
# kubectl-ocm.
package policy

prefixes := object.get(data.settings, "prefixes", [])

# Nothing else looks whether settings are what the schema says: where one is misspelt, no rule may be left that lets in.
configured if {
	is_object(data.settings)
	every name, _ in data.settings {
		name == "prefixes"
	}
	is_array(prefixes)
	every prefix in prefixes {
		is_string(prefix)
		prefix != ""
	}
}

fits if count(prefixes) == 0

fits if {
	some prefix in prefixes
	startswith(input.cluster.name, prefix)
}

# No default: it would hide that the settings cannot be used.
decision := {"verdict": "no-opinion"} if {
	configured
	not input.cluster
}

decision := {"verdict": "allow"} if {
	configured
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
	configured
	input.cluster
	not fits
}
