package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Runs a command in a pod's file system.
func serveExec(writer http.ResponseWriter, request *http.Request, pod pod) {
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	command := request.URL.Query()["command"]
	remotecommand.ServeExec(writer, request, commands{pod}, "", "", pod.container, command, options,
		time.Hour, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

type commands struct{ pod pod }

func (c commands) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errors io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	ctx, cancel := c.pod.context(ctx)
	defer cancel()
	done := make(chan error, 1)
	// The signal at the end of a parent is of its thread, which must live as long as the command.
	go func() {
		runtime.LockOSThread()
		done <- run(ctx, c.pod.path("root"), command, in, out, errors, tty)
	}()
	return <-done
}

func run(ctx context.Context, root string, command []string, in io.Reader, out, errors io.WriteCloser, tty bool) error {
	if tty {
		return unsupported("a terminal")
	}
	program := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"enter", root}, command...)...)
	program.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}
	program.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		program.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		program.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		program.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if out != nil {
		program.Stdout = out
	}
	if errors != nil {
		program.Stderr = errors
	}
	if in != nil {
		// A pipe of our own: a command that ends does not wait for the end of its input.
		stdin, err := program.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	return exitError(program.Run())
}

// As the streams' code knows exit codes.
func exitError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

type unsupported string

func (u unsupported) Error() string { return string(u) + " is not supported" }

// What a pod's commands see of this machine.
var shared = []string{"usr", "etc", "dev", "proc"}

// What is a link to a part of `usr` on most machines.
var links = []string{"bin", "sbin", "lib", "lib64"}

// Makes a directory the root of this process, with the programs of this machine in it, and runs a command.
func enter(root string, command []string) {
	must := func(what string, err error) {
		if err != nil {
			log.Fatalf("cannot %s: %v", what, err)
		}
	}
	must("leave the mounts", syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	bound := shared
	for _, name := range links {
		target, err := os.Readlink("/" + name)
		if err != nil {
			bound = append(bound, name)
			continue
		}
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil && !os.IsExist(err) {
			must("link "+name, err)
		}
	}
	for _, name := range bound {
		if _, err := os.Stat("/" + name); err != nil {
			continue
		}
		place := filepath.Join(root, name)
		must("make "+name, os.MkdirAll(place, 0o755))
		must("mount "+name, syscall.Mount("/"+name, place, "", syscall.MS_BIND|syscall.MS_REC, ""))
	}
	must("make a directory for temporary files", os.MkdirAll(filepath.Join(root, "tmp"), 0o777))
	must("change the root", syscall.Chroot(root))
	must("change the directory", os.Chdir("/"))
	program, err := exec.LookPath(command[0])
	if err != nil {
		log.SetFlags(0)
		log.Print(err)
		// As a shell and as container runtimes say it.
		os.Exit(127)
	}
	must("run "+program, syscall.Exec(program, command, os.Environ()))
}
