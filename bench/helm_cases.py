"""Times both programs on a sample of the corpus, case by case, and prints rows of the bench table.

usage: helm_cases.py CORPUS HELM PORTOLAN LIMIT
"""
import json, os, statistics, subprocess, sys, time

corpus, helm, portolan, limit = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
ROUNDS = int(os.environ.get('ROUNDS', 5))


def arguments(case):
    values = [word for name in case.get('values', []) for word in ('-f', name)]
    namespace = ['-n', case['namespace']] if case.get('namespace') else []
    return [case['release'], case['chart'], *namespace, *values, *case.get('flags', [])]


NULL = os.open('/dev/null', os.O_RDWR)
SILENT = [(os.POSIX_SPAWN_DUP2, NULL, stream) for stream in (0, 1, 2)]


def run(command):
    """Seconds from start to end.

    The process is spawned without a copy of this one, whose preparation would take longer than a small render.
    """
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(command[0], command, os.environ, file_actions=SILENT), 0)
    return time.perf_counter() - start


def memory(command):
    """Peak kilobytes, by a small parent: a process's peak never reads below that of the one it was forked from."""
    told = subprocess.run(['/usr/bin/time', '-f', '%M', *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return int(told.stderr.split()[-1])


def measure(*commands):
    """The best seconds and the peak kilobytes of each command; they take turns, so that all see the same machine."""
    rounds = [[run(command) for command in commands] for _ in range(ROUNDS)]
    return [(min(seconds), memory(command)) for seconds, command in zip(zip(*rounds), commands)]


os.chdir(corpus)
cases = [c for c in json.load(open('cases-helm.json')) if 'expected' in c]
step = max(1, len(cases) // limit)
rows = []
for case in cases[::step]:
    (ours, our_memory), (theirs, their_memory) = measure(
        [portolan, 'helm', 'template', *arguments(case)], [helm, 'template', *arguments(case)])
    rows.append((theirs / ours, ours, theirs, our_memory, their_memory, case['id']))
rows.sort()
ratios = [r[0] for r in rows]
median = statistics.median(ratios)
ours = statistics.median(r[1] for r in rows)
theirs = statistics.median(r[2] for r in rows)
print(f'| helm template, median of {len(rows)} cases | {ours * 1000:.1f} ms | helm {theirs * 1000:.1f} ms | {median:.1f}× | ≥ 10× |')
slowest = sorted(rows, key=lambda r: -r[2])[:10]
for ratio, our_time, their_time, our_memory, their_memory, name in slowest:
    print(f'| helm template, {name[:60]}, among the slowest | {our_time * 1000:.1f} ms | helm {their_time * 1000:.1f} ms | {ratio:.1f}× | ≥ 10× |')
ratio, our_time, their_time, *_, name = rows[0]
print(f'| helm template, worst ratio: {name[:50]} | {our_time * 1000:.1f} ms | helm {their_time * 1000:.1f} ms | {ratio:.1f}× | |')
memory = [r[3] / r[4] for r in rows]
print(f'| helm template, peak memory, median | {statistics.median(r[3] for r in rows) / 1024:.0f} MB | helm {statistics.median(r[4] for r in rows) / 1024:.0f} MB | {statistics.median(memory):.2f} (worst {max(memory):.2f}) | < 0.33 |')
