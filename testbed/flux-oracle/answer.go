package main

import (
	"context"
	"errors"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// answer is the document that the oracle prints.
type answer struct {
	Kustomizations map[string]kustomizationAnswer `json:"kustomizations"`
	HelmReleases   map[string]releaseAnswer       `json:"helmReleases"`
}

type kustomizationAnswer struct {
	// Status is `ok`, `error` or `unavailable-source`.
	Status  string           `json:"status"`
	Error   string           `json:"error,omitempty"`
	Missing []string         `json:"missing,omitempty"`
	Objects []map[string]any `json:"objects"`
}

type releaseAnswer struct {
	ReleaseName      string         `json:"releaseName"`
	ReleaseNamespace string         `json:"releaseNamespace"`
	Values           map[string]any `json:"values"`
	Missing          []string       `json:"missing,omitempty"`
	Error            string         `json:"error,omitempty"`
}

func (w *walk) answer() answer {
	result := answer{Kustomizations: map[string]kustomizationAnswer{}, HelmReleases: map[string]releaseAnswer{}}
	data := newCluster(w.objects())
	for _, id := range w.ids() {
		one := w.kustomizations[id]
		entry := kustomizationAnswer{Status: "ok", Missing: one.missing, Objects: []map[string]any{}}
		if one.unavailable {
			entry.Status = "unavailable-source"
		}
		if one.err != nil {
			entry.Status, entry.Error = "error", one.err.Error()
		}
		for _, object := range one.objects {
			entry.Objects = append(entry.Objects, object.Object)
			release := idOf(object)
			if _, known := result.HelmReleases[release]; !known && isHelmRelease(object) {
				result.HelmReleases[release] = composed(object, data)
			}
		}
		result.Kustomizations[id] = entry
	}
	return result
}

func isHelmRelease(object *unstructured.Unstructured) bool {
	return object.GetKind() == "HelmRelease" && object.GroupVersionKind().Group == helmv2.GroupVersion.Group
}

// composed is what helm-controller hands to the chart; references that cannot be had are named and left out.
func composed(object *unstructured.Unstructured, data *cluster) releaseAnswer {
	var release helmv2.HelmRelease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &release); err != nil {
		return releaseAnswer{Error: err.Error()}
	}
	result := releaseAnswer{ReleaseName: release.GetReleaseName(), ReleaseNamespace: release.GetReleaseNamespace()}
	references := append([]meta.ValuesReference{}, release.Spec.ValuesFrom...)
	for {
		values, err := chartutil.ChartValuesFromReferences(context.Background(), logr.Discard(), data, release.Namespace, release.GetValues(), references...)
		if err == nil {
			result.Values = values
			return result
		}
		if result.Error == "" {
			result.Error = err.Error()
		}
		var refused *chartutil.ErrValuesReference
		index := -1
		if errors.As(err, &refused) {
			index = indexOf(references, refused)
		}
		if index < 0 {
			return result
		}
		result.Missing = append(result.Missing, refused.Kind+" "+refused.Name.String())
		references = append(references[:index:index], references[index+1:]...)
	}
}

func indexOf(references []meta.ValuesReference, refused *chartutil.ErrValuesReference) int {
	for index, reference := range references {
		if reference.Kind == refused.Kind && reference.Name == refused.Name.Name && reference.GetValuesKey() == refused.Key {
			return index
		}
	}
	return -1
}
