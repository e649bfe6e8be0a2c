#!/usr/bin/env python3
"""Starts `portolan watch`, saves files, and measures the time from the save to the printed result.

  watch.py PORTOLAN REPOSITORY CLUSTER FILE OLD NEW

FILE has OLD replaced by NEW and back, in turn; the median of the times in milliseconds is printed, and on standard error
how much processor time one save takes, which does not depend on what else the machine does.
"""
import os, queue, statistics, subprocess, sys, threading, time

program, repository, cluster, name, old, new = sys.argv[1:]
path = os.path.join(repository, name)
watch = subprocess.Popen([program, 'watch', '--path', cluster, '-o', 'json'], cwd=repository,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
told, ready = queue.Queue(), threading.Event()


def listen_for_answers():
    for line in watch.stdout:
        if line.rstrip() == b'}':
            told.put(time.perf_counter())


def listen_until_ready():
    for line in watch.stderr:
        if line.startswith(b'watching '):
            ready.set()


def spent():
    """The milliseconds of processor time that it took so far."""
    fields = open(f'/proc/{watch.pid}/stat').read().rsplit(')', 1)[1].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


for listener in (listen_for_answers, listen_until_ready):
    threading.Thread(target=listener, daemon=True).start()
try:
    if not ready.wait(60):
        sys.exit('it never began to watch')
    times, before = [], spent()
    for turn in range(int(os.environ.get('RUNS', '9'))):
        text = open(path).read()
        wanted = text.replace(old, new, 1) if turn % 2 == 0 else text.replace(new, old, 1)
        if wanted == text:
            sys.exit(f'{name} has nothing to replace')
        saved = time.perf_counter()
        with open(path, 'w') as file:
            file.write(wanted)
        times.append(1000 * (told.get(timeout=30) - saved))
        time.sleep(0.3)
    print(f'{name}: {(spent() - before) / len(times):.0f} ms of processor time a save', file=sys.stderr)
    print(f'{statistics.median(times):.0f}')
finally:
    watch.kill()
    watch.wait()
