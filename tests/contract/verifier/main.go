// What Go's verifier says of chains: questions as JSON on stdin, an answer each on stdout; an empty one is trust.
package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"os"
	"time"
)

type question struct {
	Chain  []string `json:"chain"`
	Roots  []string `json:"roots"`
	Name   string   `json:"name"`
	Client bool     `json:"client"`
	At     int64    `json:"at"`
}

func parse(encoded string) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (q question) ask() error {
	leaf, err := parse(q.Chain[0])
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{
		DNSName:       q.Name,
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		CurrentTime:   time.Unix(q.At, 0),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if q.Client {
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	for _, encoded := range q.Chain[1:] {
		if certificate, err := parse(encoded); err == nil {
			options.Intermediates.AddCert(certificate)
		}
	}
	for _, encoded := range q.Roots {
		if certificate, err := parse(encoded); err == nil {
			options.Roots.AddCert(certificate)
		}
	}
	_, err = leaf.Verify(options)
	return err
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := make([]string, len(questions))
	for index, question := range questions {
		if err := question.ask(); err != nil {
			answers[index] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}
