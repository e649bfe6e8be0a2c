package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Connects a client with ports of a pod.
func servePortForward(writer http.ResponseWriter, request *http.Request, pod pod) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(writer, request, ports{pod}, "", "", options,
		time.Hour, remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

type ports struct{ pod pod }

func (p ports) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	connection, err := p.dial(port)
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := p.pod.context(ctx)
	defer cancel()
	go func() {
		<-ctx.Done()
		connection.Close()
		stream.Close()
	}()
	go func() {
		io.Copy(connection, stream)
		// The client has said all: a server may still answer.
		if half, ok := connection.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, connection)
	return err
}

func (p ports) dial(port int32) (net.Conn, error) {
	path := p.pod.path("ports", strconv.Itoa(int(port)))
	found, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("connection refused: nothing listens on port %d", port)
	}
	if found.Mode()&os.ModeSocket != 0 {
		return net.Dial("unix", path)
	}
	address, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return net.Dial("tcp", strings.TrimSpace(string(address)))
}
