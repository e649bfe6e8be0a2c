"""Clients that mean no good, all from one address: connections that say nothing, requests that never end, headers without number.

Prints `ready` when all of them are at work, and goes on until its input ends. Arguments: port, number of idle connections.
"""

import resource
import socket
import ssl
import sys
import threading
import time

limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
port, idle = int(sys.argv[1]), int(sys.argv[2])
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
ended = threading.Event()
open_sockets = []


def connect(secured=True):
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    return context.wrap_socket(plain, server_hostname="localhost") if secured else plain


def again(attack):
    """Repeats an attack: the server is allowed to end each of them."""
    while not ended.is_set():
        try:
            attack()
        except OSError:
            pass
        time.sleep(0.05)


def slow_headers():
    with connect() as stream:
        stream.sendall(b"GET /api/v1alpha/nodes HTTP/1.1\r\nhost: localhost\r\n")
        while not ended.is_set():
            stream.sendall(b"x-more: 1\r\n")
            time.sleep(0.2)


def endless_body():
    with connect() as stream:
        head = "POST /api/v1alpha/enrolments HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        stream.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        while not ended.is_set():
            stream.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def header_bomb():
    with connect() as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n")
        for number in range(20000):
            stream.sendall(f"x-{number}: {'y' * 100}\r\n".encode())


def half_handshake():
    with connect(secured=False) as stream:
        stream.sendall(b"\x16\x03\x01\x02\x00\x01")
        ended.wait(1)


def idle_connections():
    while not ended.is_set():
        while len(open_sockets) < idle and not ended.is_set():
            open_sockets.append(connect(secured=False))
        time.sleep(0.1)


attacks = [slow_headers, endless_body, header_bomb, half_handshake, idle_connections]
for attack in attacks:
    threading.Thread(target=again, args=[attack], daemon=True).start()
while len(open_sockets) < idle:
    time.sleep(0.05)
print("ready", flush=True)
sys.stdin.read()
ended.set()
