package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/resmap"
)

// build makes the objects of one Kustomization, in the order and by the calls of kustomize-controller, up to where it
// would set its owner labels.
func build(artifact string, spec *unstructured.Unstructured, data *cluster, strict bool) ([]*unstructured.Unstructured, error) {
	var typed kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec.Object, &typed); err != nil {
		return nil, err
	}
	directory := filepath.Join(artifact, clean(typed.Spec.Path))
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("kustomization path not found: %s", typed.Spec.Path)
	}
	resources, err := kustomized(artifact, directory, spec)
	if err != nil {
		return nil, err
	}
	if err := substitute(resources, spec, &typed, data, strict); err != nil {
		return nil, err
	}
	text, err := resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	objects, err := utils.ReadObjects(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if metadata := typed.Spec.CommonMetadata; metadata != nil {
		utils.SetCommonMetadata(objects, metadata.Labels, metadata.Annotations)
	}
	return objects, nil
}

// kustomized builds a directory with the Kustomization's fields merged into its kustomization.yaml, and leaves the
// artifact as it was: Kustomizations share it.
func kustomized(artifact, directory string, spec *unstructured.Unstructured) (resmap.ResMap, error) {
	manifest, file, action, err := kustomize.NewGenerator(artifact, *spec).GenerateManifest(directory)
	if err != nil {
		return nil, err
	}
	before, err := os.ReadFile(file)
	if err != nil && action == kustomize.UnchangedAction {
		return nil, err
	}
	if err := os.WriteFile(file, manifest, 0o644); err != nil {
		return nil, err
	}
	resources, buildError := kustomize.SecureBuild(artifact, directory, false)
	if action == kustomize.CreatedAction {
		err = os.Remove(file)
	} else {
		err = os.WriteFile(file, before, 0o644)
	}
	return resources, errors.Join(buildError, err)
}

func substitute(resources resmap.ResMap, spec *unstructured.Unstructured, typed *kustomizev1.Kustomization, data *cluster, strict bool) error {
	for _, resource := range resources.Resources() {
		if resource.GetName() == "" || resource.GetKind() == "" || resource.GetApiVersion() == "" {
			return fmt.Errorf("failed to decode Kubernetes apiVersion, kind and name from: %v", resource.String())
		}
		if typed.Spec.PostBuild == nil {
			continue
		}
		done, err := kustomize.SubstituteVariables(context.Background(), data, *spec, resource,
			kustomize.SubstituteWithStrict(strict),
			kustomize.SubstituteWithAlways(typed.Spec.PostBuild.SubstituteStrategy == "Always"))
		if err != nil {
			return fmt.Errorf("post build failed for '%s': %w", resource.GetName(), err)
		}
		if done == nil {
			continue
		}
		if _, err := resources.Replace(resource); err != nil {
			return err
		}
	}
	return nil
}
