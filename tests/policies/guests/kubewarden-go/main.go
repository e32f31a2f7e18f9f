// Command policy is a Kubewarden policy of the execution mode wasi, made with Kubewarden's SDK for Go: the operation is
// its argument, the request comes on stdin, the answer goes to stdout.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/protocol"
)

type settings struct {
	Prefix        string `json:"prefix"`
	DefaultRegion string `json:"default_region"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	operations := map[string]func([]byte) ([]byte, error){"validate": validate, "validate-settings": validateSettings}
	operation, known := operations[strings.Join(os.Args[1:], " ")]
	if !known {
		return fmt.Errorf("there is no operation %q", os.Args[1:])
	}
	answer, err := operation(input)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(answer)
	return err
}

func validateSettings(input []byte) ([]byte, error) {
	var wanted settings
	if err := json.Unmarshal(input, &wanted); err != nil {
		return nil, err
	}
	if wanted.Prefix == "" {
		return kubewarden.RejectSettings("the prefix must not be empty")
	}
	return kubewarden.AcceptSettings()
}

func validate(input []byte) ([]byte, error) {
	var request protocol.ValidationRequest
	if err := json.Unmarshal(input, &request); err != nil {
		return nil, err
	}
	var wanted settings
	if err := json.Unmarshal(request.Settings, &wanted); err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(request.Request.Object, &object); err != nil {
		return nil, err
	}
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if !strings.HasPrefix(name, wanted.Prefix) {
		return kubewarden.RejectRequest(kubewarden.Message(name+" does not begin with "+wanted.Prefix), kubewarden.Code(403))
	}
	labels, _ := metadata["labels"].(map[string]any)
	if _, there := labels["region"]; wanted.DefaultRegion == "" || there {
		return kubewarden.AcceptRequest()
	}
	if labels == nil {
		labels = map[string]any{}
	}
	labels["region"] = wanted.DefaultRegion
	metadata["labels"] = labels
	return kubewarden.MutateRequest(object)
}
