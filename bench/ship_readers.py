#!/usr/bin/env python3
"""Readers of a build's events: 1 that is stuck and 100 that read, at 2,000 events a second, and reads of the state.

    bench/ship_readers.py BINARY

Prints rows of the table in bench/README.md. The command of the build computes and prints; its own CPU time is measured with and
without readers. Every stream is compared with the files of the run.
"""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

BINARY = sys.argv[1]
READERS = int(os.environ.get("READERS", "100"))
LINES = 10_000
COMMAND = r"""
import hashlib, os, resource, time
began, block = time.time(), b"x" * 65536
for number in range(%d):
    # 2,000 lines a second, and some work between them.
    hashlib.sha256(block).digest()
    print("line", number, "of a program that talks", flush=number %% 20 == 0)
    if number %% 20 == 0:
        time.sleep(max(0, began + number / 2000 - time.time()))
used = resource.getrusage(resource.RUSAGE_SELF)
open(os.path.join(os.environ["PORTOLAN_OUT"], "cpu"), "w").write(str(used.ru_utime + used.ru_stime))
open(os.environ["NOTE"], "w").write(str(used.ru_utime + used.ru_stime))
""" % LINES


class Socket(http.client.HTTPConnection):
    """A connection through the socket of a run."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def build(work, readers, reads_state=False):
    (work / "web").mkdir()
    (work / "web/a").write_text("a")
    (work / "build.py").write_text(COMMAND)
    (work / "portolan.yaml").write_text(
        "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: bench}\nspec:\n  artifacts:\n"
        "  - name: noisy\n    image: registry.example/noisy\n    command:\n"
        f"      run: [python3, build.py]\n      inputs: [build.py]\n      output: files\n      set: {{NOTE: {work}/note}}\n"
    )
    began = time.time()
    process = subprocess.Popen(
        [BINARY, "ship", "build", "-q"], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    streams, times, threads = [], [], []
    if readers:
        path = wait_for_socket(work)
        stuck = Socket(path)
        stuck.request("GET", "/api/ship/v1/events")
        for _ in range(readers):
            threads.append(threading.Thread(target=read_events, args=(path, streams)))
    if reads_state:
        threads.append(threading.Thread(target=read_states, args=(wait_for_socket(work), times)))
    for thread in threads:
        thread.start()
    code = process.wait()
    took = time.time() - began
    for thread in threads:
        thread.join()
    assert code == 0, code
    known = subprocess.run([BINARY, "events"], cwd=work, stdout=subprocess.PIPE, check=True).stdout
    lost = sum(stream != known for stream in streams)
    return float((work / "note").read_text()), took, times, lost


def wait_for_socket(work):
    for _ in range(1000):
        for path in work.glob(".portolan/portolan/runs/*/api.sock"):
            try:
                connection = Socket(str(path))
                connection.connect()
                return str(path)
            except OSError:
                pass
        time.sleep(0.01)
    raise SystemExit("the build serves no socket")


def read_events(path, streams):
    connection = Socket(path)
    connection.request("GET", "/api/ship/v1/events")
    body = connection.getresponse().read()
    streams.append(b"".join(line + b"\n" for line in body.split(b"\n") if line))


def read_states(path, times):
    """Reads the state as fast as one connection can, for two seconds."""
    connection = Socket(path)
    end = time.time() + 2
    while time.time() < end:
        began = time.time()
        connection.request("GET", "/api/ship/v1/state")
        json.loads(connection.getresponse().read())
        times.append(time.time() - began)


def main():
    def run(*asked):
        with tempfile.TemporaryDirectory() as work:
            return build(pathlib.Path(work), *asked)

    quiet, quiet_took, _, _ = run(0)
    busy, busy_took, _, lost = run(READERS)
    # The hundred readers are threads of this process, and would slow its own requests.
    _, _, times, _ = run(0, True)
    times.sort()
    name = f"ship: a build at 2,000 events/s with {READERS} readers and 1 that is stuck"
    print(f"| {name}, its command's CPU time | {busy:.2f} s, {busy_took:.1f} s in all | without readers: {quiet:.2f} s, {quiet_took:.1f} s in all | {100 * (busy / quiet - 1):+.1f} % | ≤ 5 % |")
    print(f"| {name}, streams that differ from the files | {lost} of {READERS} | | | 0 |")
    p99 = times[len(times) * 99 // 100] * 1000
    print(f"| ship: reads of the state while a build prints 2,000 lines/s, one connection | {len(times) / 2:.0f}/s, p99 {p99:.1f} ms | | | p99 ≤ 5 ms |")


main()
