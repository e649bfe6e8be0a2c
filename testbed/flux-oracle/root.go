package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// findRoot returns the Kustomization that a cluster starts from, and the ignore rules of its source when the same file
// declares them.
func findRoot(repo, root string) (*unstructured.Unstructured, string, error) {
	directory := filepath.Join(repo, root)
	var found *unstructured.Unstructured
	var ignore string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found != nil || entry.IsDir() || !isYAML(path) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := utils.ReadObjects(bytes.NewReader(text))
		if err != nil {
			return nil
		}
		for _, object := range objects {
			if isFluxKustomization(object) && clean(nested(object, "spec", "path")) == clean(root) {
				found = object
				ignore = ignoreRules(objects, object)
			}
		}
		return nil
	})
	if found == nil {
		found = bootstrapped(root)
	}
	return found, ignore, err
}

// ignoreRules returns what a Kustomization's source, declared beside it, says is not part of the artifact.
func ignoreRules(objects []*unstructured.Unstructured, kustomization *unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == nested(kustomization, "spec", "sourceRef", "kind") &&
			object.GetName() == nested(kustomization, "spec", "sourceRef", "name") {
			return nested(object, "spec", "ignore")
		}
	}
	return ""
}

// bootstrapped is the Kustomization that `flux bootstrap --path` makes.
func bootstrapped(root string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1",
		"kind":       "Kustomization",
		"metadata":   map[string]any{"name": "flux-system", "namespace": "flux-system"},
		"spec": map[string]any{
			"path":      "./" + clean(root),
			"prune":     true,
			"interval":  "10m",
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
		},
	}}
}

func isFluxKustomization(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Kustomization" && strings.HasPrefix(object.GetAPIVersion(), "kustomize.toolkit.fluxcd.io/")
}

func isYAML(path string) bool {
	extension := filepath.Ext(path)
	return extension == ".yaml" || extension == ".yml"
}

func clean(path string) string {
	return strings.TrimPrefix(filepath.Join("/", path), "/")
}

func nested(object *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, fields...)
	return text
}
