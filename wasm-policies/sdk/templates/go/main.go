// Clusters are let in under names that begin as they must.
//
// A policy in Go is a WASI command: "describe" prints its manifest, "decide" reads a request from stdin, with its
// settings as one more member, and prints a decision. docs/policies/contract.md of kubectl-ocm describes all members.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

type settings struct {
	// What a name may begin with; nothing: anything.
	Prefixes []string `json:"prefixes"`
}

type request struct {
	Cluster *struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"cluster"`
	Settings json.RawMessage `json:"settings"`
}

type reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
}

type decision struct {
	Verdict string   `json:"verdict"`
	Reasons []reason `json:"reasons,omitempty"`
}

const manifest = `{
  "contract": "ocm:policy@0.1.0",
  "name": "{{name}}",
  "version": "0.1.0",
  "description": "Lets in clusters whose names begin as they must",
  "operations": ["create", "accept", "join"],
  "reasons": [{"code": "NamePrefix", "description": "The name does not begin as it must"}],
  "settingsSchema": {"type": "object", "additionalProperties": false, "properties": {
    "prefixes": {"type": "array", "items": {"type": "string", "minLength": 1},
                 "description": "What a name may begin with; nothing: anything"}}}
}`

// Nothing else looks whether settings are what the schema says: a misspelt one must end in an error, not let every name in.
func configure(given json.RawMessage) ([]string, error) {
	read := &settings{Prefixes: []string{}}
	decoder := json.NewDecoder(bytes.NewReader(given))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return nil, err
	}
	if read == nil || read.Prefixes == nil {
		return nil, errors.New("null is neither settings nor a list of prefixes")
	}
	for _, prefix := range read.Prefixes {
		if prefix == "" {
			return nil, errors.New("prefixes: an empty prefix fits every name; leave prefixes out instead")
		}
	}
	return read.Prefixes, nil
}

func decide(asked request, prefixes []string) decision {
	if asked.Cluster == nil {
		return decision{Verdict: "no-opinion"}
	}
	if len(prefixes) == 0 {
		return decision{Verdict: "allow"}
	}
	for _, prefix := range prefixes {
		if strings.HasPrefix(asked.Cluster.Name, prefix) {
			return decision{Verdict: "allow"}
		}
	}
	message := "the name must begin with one of: " + strings.Join(prefixes, ", ")
	return decision{Verdict: "deny", Reasons: []reason{{Code: "NamePrefix", Message: message, Field: "metadata.name"}}}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "describe" {
		fmt.Println(manifest)
		return
	}
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "the request cannot be read:", err)
		os.Exit(1)
	}
	prefixes, err := configure(asked.Settings)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the settings cannot be used:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(decide(asked, prefixes)); err != nil {
		os.Exit(1)
	}
}
