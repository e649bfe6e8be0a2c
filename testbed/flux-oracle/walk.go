package main

import (
	"encoding/json"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// maxRounds bounds how often everything is looked at again because something changed.
const maxRounds = 12

// walk builds Kustomizations and those that they emit until nothing new appears.
type walk struct {
	artifact       string
	strict         bool
	source         string
	kustomizations map[string]*built
}

// built is a Kustomization and what became of it.
type built struct {
	spec    *unstructured.Unstructured
	inputs  string
	objects []*unstructured.Unstructured
	err     error
	// missing lists data that the repository does not render; the objects are then those of a build without it.
	missing     []string
	unavailable bool
}

func newWalk(artifact string, strict bool, root *unstructured.Unstructured) *walk {
	one := &walk{artifact: artifact, strict: strict, source: sourceOf(root), kustomizations: map[string]*built{}}
	one.kustomizations[idOf(root)] = &built{spec: root}
	return one
}

func (w *walk) run() error {
	for range maxRounds {
		data := newCluster(w.objects())
		changed := false
		for _, id := range w.ids() {
			changed = w.build(w.kustomizations[id], data) || changed
		}
		if !w.discover() && !changed {
			return nil
		}
	}
	return fmt.Errorf("still changing after %d rounds", maxRounds)
}

// build builds a Kustomization unless it was built from the same inputs before; says whether it did.
func (w *walk) build(one *built, data *cluster) bool {
	if sourceOf(one.spec) != w.source {
		one.unavailable = true
		return false
	}
	missing, inputs := references(one.spec, data)
	if one.inputs == inputs {
		return false
	}
	one.inputs, one.missing = inputs, nil
	one.objects, one.err = build(w.artifact, one.spec, data, w.strict)
	if one.err != nil && len(missing) > 0 {
		// Variables that the missing data would have set are unset because of that, which is no fault of its own.
		objects, err := build(w.artifact, allOptional(one.spec), data, false)
		if err == nil {
			one.objects, one.missing = objects, missing
		}
	}
	return true
}

// references says what of a Kustomization's data is missing, and sums up everything that its build depends on.
func references(spec *unstructured.Unstructured, data *cluster) ([]string, string) {
	var missing []string
	inputs := []any{spec.Object}
	list, _, _ := unstructured.NestedSlice(spec.Object, "spec", "postBuild", "substituteFrom")
	for _, entry := range list {
		reference, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := reference["kind"].(string)
		name, _ := reference["name"].(string)
		optional, _ := reference["optional"].(bool)
		key := types.NamespacedName{Namespace: spec.GetNamespace(), Name: name}
		inputs = append(inputs, data.configMaps[key], data.secrets[key])
		if !optional && !data.has(kind, key) {
			missing = append(missing, kind+" "+key.String())
		}
	}
	text, _ := json.Marshal(inputs)
	return missing, string(text)
}

func allOptional(spec *unstructured.Unstructured) *unstructured.Unstructured {
	spec = spec.DeepCopy()
	list, _, _ := unstructured.NestedSlice(spec.Object, "spec", "postBuild", "substituteFrom")
	for _, entry := range list {
		if reference, ok := entry.(map[string]any); ok {
			reference["optional"] = true
		}
	}
	_ = unstructured.SetNestedSlice(spec.Object, list, "spec", "postBuild", "substituteFrom")
	return spec
}

// discover takes over the Kustomizations that are emitted now; of several with one name the first emitter's counts.
func (w *walk) discover() bool {
	seen := map[string]bool{}
	changed := false
	for _, id := range w.ids() {
		for _, object := range w.kustomizations[id].objects {
			emitted := idOf(object)
			if !isFluxKustomization(object) || seen[emitted] {
				continue
			}
			seen[emitted] = true
			known := w.kustomizations[emitted]
			if known == nil {
				w.kustomizations[emitted] = &built{spec: object}
				changed = true
			} else if fmt.Sprint(known.spec.Object) != fmt.Sprint(object.Object) {
				known.spec = object
				changed = true
			}
		}
	}
	return changed
}

func (w *walk) ids() []string {
	ids := make([]string, 0, len(w.kustomizations))
	for id := range w.kustomizations {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

func (w *walk) objects() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, id := range w.ids() {
		objects = append(objects, w.kustomizations[id].objects...)
	}
	return objects
}

func idOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

func sourceOf(kustomization *unstructured.Unstructured) string {
	namespace := nested(kustomization, "spec", "sourceRef", "namespace")
	if namespace == "" {
		namespace = kustomization.GetNamespace()
	}
	return nested(kustomization, "spec", "sourceRef", "kind") + " " + namespace + "/" + nested(kustomization, "spec", "sourceRef", "name")
}
