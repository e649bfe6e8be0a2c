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
RECORDED = {"cold": (11.3, 9.6, 405), "warm": (1.08, 0.75, 200)}
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


def both(run):
    """Wall clock and CPU: on a busy machine the second says more."""
    return f"{shown(run[0])} ({shown(run[1])} CPU)"


def flate_runs(flate, directory):
    """Cold with an empty cache, then warm with a full one; the recorded figures when flate is not there."""
    if not flate:
        print("flate is not on PATH: its recorded figures are shown", file=sys.stderr)
        return RECORDED, " (recorded)"
    command = [flate, "build", "all", "--path", "clusters/main", "--skip-secrets=false", "--skip-crds=false", "--no-progress"]
    cache = tempfile.mkdtemp()
    environment = dict(os.environ, FLATE_CACHE_DIR=cache)
    cold = timed(command, directory, environment)
    warm = best(command, directory, environment)
    shutil.rmtree(cache)
    return {"cold": cold, "warm": warm}, ""


def main():
    portolan, flate, work = sys.argv[1:]
    build = [portolan, "build", "all", "--offline", "--show-secrets"]
    hundred = best([*build, "--path", "clusters/main"], f"{work}/100")
    peers, note = flate_runs(flate, f"{work}/100")
    for name, target in (("cold", 20), ("warm", 2)):
        peer = peers[name]
        ratios = f"{peer[0] / hundred[0]:.1f}x ({peer[1] / hundred[1]:.1f}x CPU)"
        row(f"Flux repository, 100 releases, flate {name}", both(hundred), both(peer) + note, ratios, f">= {target}x")
        row(f"peak memory of the same, flate {name}", f"{hundred[2]:.0f} MB", f"{peer[2]:.0f} MB{note}", f"{hundred[2] / peer[2]:.2f}", "<= 100 MB")
    row("against flux-local's 78 Kustomizations and 68 releases (recorded)", shown(hundred[0]), shown(FLUX_LOCAL_SECONDS) + " (recorded)", f"{FLUX_LOCAL_SECONDS / hundred[0]:.0f}x", ">= 100x")
    thousand = best([*build, "--path", "clusters/main"], f"{work}/1000", runs=3)
    growth = f"{thousand[0] / hundred[0]:.1f}x ({thousand[1] / hundred[1]:.1f}x CPU)"
    row("1,000 releases against 100", both(thousand), both(hundred), growth, "<= 11x")
    row("peak memory of 1,000 releases", f"{thousand[2]:.0f} MB", "", "", "<= 80 MB")
    row("cores in use, 1,000 releases", f"{thousand[1] / thousand[0]:.2f}", f"{os.cpu_count()} cores", "", ">= 1.7")
    many = best([*build, "--path", "clusters/main"], f"{work}/10000", runs=1)
    growth = f"{many[0] / thousand[0]:.1f}x ({many[1] / thousand[1]:.1f}x CPU)"
    row("10,000 releases against 1,000", both(many), both(thousand), growth, "<= 11x")
    row("peak memory of 10,000 releases", f"{many[2]:.0f} MB", "", "", "<= 200 MB")
    together = best(build, f"{work}/two")
    each = [best([*build, "--path", f"clusters/{name}"], f"{work}/two") for name in ("main", "second")]
    apart = [sum(run[index] for run in each) for index in (0, 1)]
    ratios = f"{apart[0] / together[0]:.1f}x ({apart[1] / together[1]:.1f}x CPU)"
    row("two clusters in one run against two runs", both(together), both(apart), ratios, "> 1x")


if __name__ == "__main__":
    main()
