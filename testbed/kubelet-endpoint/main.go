// The HTTPS endpoint of a kubelet: logs, commands and port forwards of pods that are directories.
//
//	PODS/<namespace>/<pod>/
//	  root/                the pod's file system; commands run in it
//	  logs/<container>     what the container printed, in the format of container runtimes
//	  logs/<container>.previous
//	  stopped/<container>  there once the container has ended: a followed log ends
//	  ports/<port>         the local address that the port leads to, or a Unix socket
//
// The streams are Kubernetes' own code, so that a client meets the real protocols. A pod that is removed ends its
// streams, as it does on a real node.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// How often it is looked whether a pod is still there.
const lookForPod = 50 * time.Millisecond

func main() {
	if len(os.Args) > 3 && os.Args[1] == "enter" {
		enter(os.Args[2], os.Args[3:])
	}
	address := flag.String("address", "", "the address to listen on")
	pods := flag.String("pods", "", "the directory with the pods")
	authority := flag.String("authority", "", "the certificate that signed those of clients")
	certificate := flag.String("certificate", "", "the server's certificate")
	key := flag.String("key", "", "the server's key")
	flag.Parse()

	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(*authority)
	if err != nil || !trusted.AppendCertsFromPEM(pem) {
		log.Fatalf("cannot read the authority %q: %v", *authority, err)
	}
	server := http.Server{
		Addr:    *address,
		Handler: routes(*pods),
		TLSConfig: &tls.Config{
			ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs:  trusted,
			// Streams take over their connection, which HTTP/2 does not have.
			NextProtos: []string{"http/1.1"},
		},
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}

func routes(pods string) http.Handler {
	mux := http.NewServeMux()
	withPod := func(serve func(http.ResponseWriter, *http.Request, pod)) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			pod, err := find(pods, request)
			if err != nil {
				http.Error(writer, err.Error(), http.StatusNotFound)
				return
			}
			serve(writer, request, pod)
		}
	}
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", withPod(serveLog))
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", withPod(serveExec))
	mux.HandleFunc("/portForward/{namespace}/{pod}", withPod(servePortForward))
	return mux
}

// A pod's directory and the container that is asked for.
type pod struct {
	directory string
	container string
}

func find(pods string, request *http.Request) (pod, error) {
	namespace, name := request.PathValue("namespace"), request.PathValue("pod")
	container := request.PathValue("container")
	for _, part := range []string{namespace, name, container} {
		if strings.ContainsAny(part, "/\\") || part == ".." {
			return pod{}, errors.New("not a name")
		}
	}
	found := pod{filepath.Join(pods, namespace, name), container}
	if !found.isThere() {
		return pod{}, errors.New("pod does not exist")
	}
	return found, nil
}

func (p pod) path(parts ...string) string {
	return filepath.Join(append([]string{p.directory}, parts...)...)
}

func (p pod) isThere() bool {
	_, err := os.Stat(p.directory)
	return err == nil
}

// A context that ends with the pod.
func (p pod) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		for p.isThere() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookForPod):
			}
		}
		cancel()
	}()
	return ctx, cancel
}
