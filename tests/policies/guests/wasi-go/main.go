// A policy as a plain Go program: it reads the request and prints the decision.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

type request struct {
	Operation string `json:"operation"`
	Cluster   struct {
		Name string `json:"name"`
	} `json:"cluster"`
	Settings struct {
		Prefix string `json:"prefix"`
		Break  string `json:"break"`
	} `json:"settings"`
}

type reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type decision struct {
	Verdict string            `json:"verdict"`
	Reasons []reason          `json:"reasons,omitempty"`
	Audit   map[string]string `json:"audit,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "describe" {
		fmt.Println(`{"contract":"ocm:policy@0.1.0","name":"go-prefix","version":"1.0.0","operations":["create","accept"],` +
			`"reasons":[{"code":"WrongName","description":"the name does not begin as it must"}]}`)
		return
	}
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	switch asked.Settings.Break {
	case "panic":
		panic("on purpose")
	case "exit":
		os.Exit(7)
	case "loop":
		for {
		}
	case "memory":
		var kept [][]byte
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "print":
		for {
			fmt.Println(strings.Repeat("more and more", 5000))
		}
	case "sleep":
		time.Sleep(time.Hour)
	}
	said := decision{Verdict: "allow", Audit: map[string]string{
		// What is random and what is time elsewhere is made of the request here.
		"drawn": fmt.Sprint(rand.Uint64()),
		"year":  fmt.Sprint(time.Now().UTC().Year()),
	}}
	if !strings.HasPrefix(asked.Cluster.Name, asked.Settings.Prefix) {
		said.Verdict = "deny"
		said.Reasons = []reason{{"WrongName", asked.Cluster.Name + " does not begin with " + asked.Settings.Prefix}}
	}
	if _, err := os.ReadFile("/etc/passwd"); err == nil || len(os.Environ()) > 0 {
		os.Exit(9)
	}
	_ = json.NewEncoder(os.Stdout).Encode(said)
}
