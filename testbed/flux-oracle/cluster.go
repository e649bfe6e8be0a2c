package main

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster answers for the ConfigMaps and Secrets that the repository itself renders, and for no others.
type cluster struct {
	client.Client
	configMaps map[types.NamespacedName]map[string]string
	secrets    map[types.NamespacedName]map[string][]byte
}

func newCluster(objects []*unstructured.Unstructured) *cluster {
	data := &cluster{
		configMaps: map[types.NamespacedName]map[string]string{},
		secrets:    map[types.NamespacedName]map[string][]byte{},
	}
	for _, object := range objects {
		if object.GetAPIVersion() != "v1" {
			continue
		}
		name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		switch object.GetKind() {
		case "ConfigMap":
			if _, known := data.configMaps[name]; !known {
				data.configMaps[name] = texts(object, "data")
			}
		case "Secret":
			if _, known := data.secrets[name]; !known {
				data.secrets[name] = secretData(object)
			}
		}
	}
	return data
}

// secretData is what the API server makes of a Secret; a value that is no base64, such as a sealed one, stands for itself.
func secretData(object *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range texts(object, "data") {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			decoded = []byte(value)
		}
		data[key] = decoded
	}
	for key, value := range texts(object, "stringData") {
		data[key] = []byte(value)
	}
	return data
}

func texts(object *unstructured.Unstructured, field string) map[string]string {
	values, _, _ := unstructured.NestedMap(object.Object, field)
	texts := map[string]string{}
	for key, value := range values {
		texts[key] = fmt.Sprint(value)
	}
	return texts
}

func (data *cluster) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		if values, known := data.configMaps[name]; known {
			object.Data = values
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name.Name)
	case *corev1.Secret:
		if values, known := data.secrets[name]; known {
			object.Data = values
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name.Name)
	}
	return fmt.Errorf("the oracle has no %T", object)
}

// has says whether the repository renders a ConfigMap or Secret.
func (data *cluster) has(kind string, name types.NamespacedName) bool {
	if kind == "Secret" {
		_, known := data.secrets[name]
		return known
	}
	_, known := data.configMaps[name]
	return known
}
