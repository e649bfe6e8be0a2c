// The oracle says what Flux makes of a repository, by the Go libraries that Flux itself is made of.
//
//	flux-oracle -repo DIR -root PATH [-strict]
//
// DIR is packed as source-controller packs a GitRepository; the walk starts at the root Kustomization of PATH (the one
// there that builds PATH, or the one `flux bootstrap` makes) and follows every Kustomization that is emitted. Nothing is
// read from a network or a cluster: ConfigMaps and Secrets are those that the repository renders. The answer is one JSON
// document on stdout.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	repo := flag.String("repo", ".", "the repository's directory")
	root := flag.String("root", ".", "the directory the cluster is bootstrapped from, inside the repository")
	strict := flag.Bool("strict", false, "fail on variables that nobody sets, as Flux does since 2.9")
	flag.Parse()
	if err := run(*repo, *root, *strict); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func run(repo, root string, strict bool) error {
	artifact, err := os.MkdirTemp("", "flux-oracle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(artifact)
	first, ignore, err := findRoot(repo, root)
	if err != nil {
		return err
	}
	if err := pack(repo, artifact, ignore); err != nil {
		return err
	}
	walk := newWalk(artifact, strict, first)
	if err := walk.run(); err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	return output.Encode(walk.answer())
}
