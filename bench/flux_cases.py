#!/usr/bin/env python3
"""Rows of bench/flux.sh: times whole processes and prints `| work | ours | peer | ratio | target |`."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

RUNS = 5
# Measured beside which ours is to be ahead, on two cores (see the issue of the Flux repository).
RECORDED = {"cold": (11.3, 405), "warm": (1.08, 200)}
FLUX_LOCAL_SECONDS = 28.0


def timed(command, directory, environment=None):
    """Seconds, seconds of CPU and peak MB of one run."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=directory, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if os.fstat(out.fileno()).st_size == 0:
            sys.exit(f"{' '.join(command)} printed nothing")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def best(command, directory, environment=None, runs=RUNS):
    return min((timed(command, directory, environment) for _ in range(runs)), key=lambda run: run[0])


def row(work, ours, peer, ratio, target):
    print(f"| {work} | {ours} | {peer} | {ratio} | {target} |", flush=True)


def shown(seconds):
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def flate_runs(flate, directory):
    """Cold with an empty cache, then warm with a full one; the recorded figures when flate is not there."""
    if not flate:
        print("flate is not on PATH: its recorded figures are shown", file=sys.stderr)
        return {name: (seconds, mb, " (recorded)") for name, (seconds, mb) in RECORDED.items()}
    command = [flate, "build", "all", "--path", "clusters/main", "--skip-secrets=false", "--skip-crds=false", "--no-progress"]
    cache = tempfile.mkdtemp()
    environment = dict(os.environ, FLATE_CACHE_DIR=cache)
    cold = timed(command, directory, environment)
    warm = best(command, directory, environment)
    shutil.rmtree(cache)
    return {"cold": (cold[0], cold[2], ""), "warm": (warm[0], warm[2], "")}


def main():
    portolan, flate, work = sys.argv[1:]
    build = [portolan, "build", "all", "--offline", "--show-secrets"]
    hundred = best([*build, "--path", "clusters/main"], f"{work}/100")
    peers = flate_runs(flate, f"{work}/100")
    for name, target in (("cold", 20), ("warm", 2)):
        seconds, mb, note = peers[name]
        row(f"Flux repository, 100 releases, flate {name}", shown(hundred[0]), shown(seconds) + note, f"{seconds / hundred[0]:.1f}x", f">= {target}x")
        row(f"peak memory of the same, flate {name}", f"{hundred[2]:.0f} MB", f"{mb:.0f} MB{note}", f"{hundred[2] / mb:.2f}", "<= 100 MB")
    row("against flux-local's 78 Kustomizations and 68 releases (recorded)", shown(hundred[0]), shown(FLUX_LOCAL_SECONDS) + " (recorded)", f"{FLUX_LOCAL_SECONDS / hundred[0]:.0f}x", ">= 100x")
    thousand = best([*build, "--path", "clusters/main"], f"{work}/1000", runs=3)
    row("1,000 releases against 100", shown(thousand[0]), shown(hundred[0]), f"{thousand[0] / hundred[0]:.1f}x", "<= 11x")
    row("peak memory of 1,000 releases", f"{thousand[2]:.0f} MB", "", "", "")
    row("cores in use, 1,000 releases", f"{thousand[1] / thousand[0]:.2f}", f"{os.cpu_count()} cores", "", ">= 1.7")
    both = best(build, f"{work}/two")
    each = [best([*build, "--path", f"clusters/{name}"], f"{work}/two") for name in ("main", "second")]
    row("two clusters in one run against two runs", shown(both[0]), shown(sum(run[0] for run in each)), f"{sum(run[0] for run in each) / both[0]:.1f}x", "> 1x")


if __name__ == "__main__":
    main()
