package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	cri "k8s.io/cri-api/pkg/apis"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// Answers with a container's log as the kubelet reads it.
func serveLog(writer http.ResponseWriter, request *http.Request, pod pod) {
	options, err := logOptions(request)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	path := pod.path("logs", pod.container)
	if request.URL.Query().Get("previous") == "true" {
		path += ".previous"
	}
	if _, err := os.Stat(path); err != nil {
		message := fmt.Sprintf("container %q has no such log", pod.container)
		http.Error(writer, message, http.StatusBadRequest)
		return
	}
	ctx, cancel := pod.context(request.Context())
	defer cancel()
	writer.Header().Set("Transfer-Encoding", "chunked")
	flushed := &flushing{writer}
	flushed.flush()
	logs.ReadLogs(ctx, path, pod.container, options, containers{pod: pod}, flushed, flushed)
}

func logOptions(request *http.Request) (*logs.LogOptions, error) {
	query := request.URL.Query()
	options := &logs.LogOptions{
		Follow:    query.Get("follow") == "true",
		Timestamp: query.Get("timestamps") == "true",
	}
	number := func(name string) (*int64, error) {
		text := query.Get(name)
		if text == "" {
			return nil, nil
		}
		value, err := strconv.ParseInt(text, 10, 64)
		return &value, err
	}
	var err error
	if options.TailLines, err = number("tailLines"); err != nil {
		return nil, err
	}
	if options.LimitBytes, err = number("limitBytes"); err != nil {
		return nil, err
	}
	seconds, err := number("sinceSeconds")
	if err != nil {
		return nil, err
	}
	if seconds != nil {
		options.Since = time.Now().Add(-time.Duration(*seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		options.Since, err = time.Parse(time.RFC3339, text)
	}
	return options, err
}

// Tells the reader of logs whether a container still runs; nothing else is asked of it.
type containers struct {
	cri.RuntimeService
	pod pod
}

func (c containers) ContainerStatus(context.Context, string, bool) (*runtime.ContainerStatusResponse, error) {
	state := runtime.ContainerState_CONTAINER_RUNNING
	if _, err := os.Stat(c.pod.path("stopped", c.pod.container)); err == nil || !c.pod.isThere() {
		state = runtime.ContainerState_CONTAINER_EXITED
	}
	return &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{State: state}}, nil
}

type flushing struct{ http.ResponseWriter }

func (f *flushing) flush() {
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

func (f *flushing) Write(bytes []byte) (int, error) {
	written, err := f.ResponseWriter.Write(bytes)
	f.flush()
	return written, err
}
