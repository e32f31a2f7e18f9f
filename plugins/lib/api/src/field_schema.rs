//! Schemas of the fields whose types are not ours: of Kubernetes, or any JSON (feature `schema`).

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// Any members, of which none is dropped. How large they may be in all is decided by how large an object may be. They are
/// one value: whoever applies them replaces all of them.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 256, "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic",
    })
}

pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "One aspect of the object's state.",
            "type": "object",
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": { "description": "Details for people.", "type": "string", "maxLength": 32768 },
                "observedGeneration": {
                    "description": "metadata.generation that the condition speaks of.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why, as one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Name of the condition.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

pub(crate) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "A taint that the pods tolerate, as in a pod's spec.",
            "type": "object",
            "properties": {
                "effect": { "description": "Effect of the taint; empty for any.", "type": "string" },
                "key": { "description": "Key of the taint; empty for any.", "type": "string" },
                "operator": { "description": "How the value compares, Equal unless said.", "type": "string" },
                "tolerationSeconds": {
                    "description": "For how many seconds a NoExecute taint is tolerated; without it there is no limit.",
                    "type": "integer",
                    "format": "int64",
                },
                "value": { "description": "Value of the taint.", "type": "string" },
            },
        },
    })
}

pub(crate) fn resource_requirements(_: &mut SchemaGenerator) -> Schema {
    let quantities = |description: &str| {
        json!({
            "description": description,
            "type": "object",
            "additionalProperties": {
                "anyOf": [{ "type": "integer" }, { "type": "string" }],
                "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
                "x-kubernetes-int-or-string": true,
            },
        })
    };
    json_schema!({
        "type": "object",
        "properties": {
            "claims": {
                "description": "Claims of the pod's spec that the containers use.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": { "description": "Name of the claim.", "type": "string" },
                        "request": { "description": "Name of one request of the claim; empty for all.", "type": "string" },
                    },
                    "required": ["name"],
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "limits": quantities("The most of each resource that a container may use."),
            "requests": quantities("The amount of each resource that is kept free for a container."),
        },
    })
}
