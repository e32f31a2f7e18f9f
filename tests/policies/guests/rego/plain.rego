package ocm

default allow := false

allow if {
	input.operation == "create"
	startswith(input.cluster.name, data.settings.prefix)
}

deny contains msg if {
	input.cluster.labels.env == "forbidden"
	msg := sprintf("environment %v of %s is not welcome (%d)", [input.cluster.labels.env, input.cluster.name, input.attempt])
}

decision := {"allow": allow, "deny": deny}
