package k8suniqueteam

# No two namespaces may be of one team, and nothing may be deleted that is protected.
violation contains {"msg": msg} if {
	other := data.inventory.cluster.v1.Namespace[name]
	name != input.review.object.metadata.name
	other.metadata.labels.team == input.review.object.metadata.labels.team
	msg := sprintf("%v is of team %v", [name, other.metadata.labels.team])
}

violation contains {"msg": "it is protected"} if {
	input.review.operation == "DELETE"
	input.review.object.metadata.labels.protected == "true"
}

violation contains {"msg": "the registry is not one of ours"} if {
	image := input.review.object.metadata.annotations.image
	not strings.any_prefix_match(image, input.parameters.registries)
}
