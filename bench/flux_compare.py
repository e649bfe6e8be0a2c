#!/usr/bin/env python3
"""Compares what `portolan build all` and flate make of a Flux repository, object for object.

  flux_compare.py REPO ROOT [--portolan BINARY] [--limit N]

REPO is the repository, ROOT the cluster's directory in it. Secrets and CRDs are compared too. Every difference is
printed with the path of the field; the exit code is 1 when there are any that the table EXPLAINED does not name.
Needs PyYAML, and flate on PATH.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import yaml

KUBE_VERSION = "1.34.0"

# Where the two differ because flate does something else than Flux: a test on (object, path, theirs, ours), the reason.
EXPLAINED = []


def explained(reason):
    def add(test):
        EXPLAINED.append((test, reason))
        return test

    return add


@explained("Flux's controllers put their owner labels on every object; flate leaves them out")
def owner_labels(_object, path, _theirs, _ours):
    return any(f"{group}.toolkit.fluxcd.io/name" in path for group in ("kustomize", "helm"))


@explained("Flux makes `$$` a `$` in every object that it substitutes variables in; flate keeps both")
def doubled_dollars(_object, _path, theirs, ours):
    return isinstance(theirs, str) and isinstance(ours, str) and theirs.replace("$$", "$") == ours


@explained("Helm 4, which Flux is made of, reads a template's last text as it is; flate adds a line break to it")
def last_line_breaks(_object, _path, theirs, ours):
    return isinstance(theirs, str) and isinstance(ours, str) and theirs == ours + "\n"


REPEATED_KEYS = "flate leaves out objects of charts that repeat a key; Flux says so and refuses their release"
# Objects of charts of the shared corpus that repeat a key.
REPEATS_KEYS = ("stable-prometheus-snmp-exporter", "incubator-goldfish-goldfish")

WITHOUT_NAMESPACE = "kinds without namespaces, or nobody knows: flate writes the release's namespace into them all the same"


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    pass


# Timestamps are texts to Kubernetes.
Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in Loader.yaml_implicit_resolvers.items()
}
Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def objects(command, directory, environment=None):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, env=environment)
    if not done.stdout:
        sys.exit(f"{command[0]} printed nothing (exit {done.returncode}):\n{done.stderr}")
    return [document for document in yaml.load_all(done.stdout, Loader) if document]


def name(document):
    metadata = document.get("metadata") or {}
    return " ".join(
        str(part) for part in (document.get("apiVersion"), document.get("kind"), metadata.get("namespace", "-"), metadata.get("name"))
    )


def differences(theirs, ours, path=""):
    """Yields (path, theirs, ours) for every leaf that differs."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(set(theirs) | set(ours), key=str):
            below = f"{path}.{key}"
            if key not in theirs:
                yield below, None, ours[key]
            elif key not in ours:
                yield below, theirs[key], None
            else:
                yield from differences(theirs[key], ours[key], below)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, pair in enumerate(zip(theirs, ours)):
            yield from differences(*pair, f"{path}[{index}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield path, theirs, ours


def by_name(documents):
    named = collections.defaultdict(list)
    for document in documents:
        named[name(document)].append(document)
    for same in named.values():
        same.sort(key=lambda document: json.dumps(document, sort_keys=True, default=str))
    return named


def forget_namespaces(theirs, ours):
    """Pairs objects that have a namespace there and none here; says how many."""
    count = 0
    for object_name in sorted(set(theirs) - set(ours)):
        api_version, kind, _, own = object_name.split(" ", 3)
        bare = f"{api_version} {kind} - {own}"
        if bare in ours and bare not in theirs:
            theirs[bare] = theirs.pop(object_name)
            for document in theirs[bare]:
                document["metadata"].pop("namespace")
                count += 1
    return count


def reason_for(object_name, difference):
    return next((reason for test, reason in EXPLAINED if test(object_name, *difference)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repo")
    parser.add_argument("root")
    parser.add_argument("--portolan", default="portolan")
    parser.add_argument("--limit", type=int, default=20, help="how many differences are printed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, FLATE_CACHE_DIR=cache)
        theirs = objects(
            ["flate", "build", "all", "--path", args.root, "--skip-secrets=false", "--skip-crds=false", "--no-progress", "--kube-version", KUBE_VERSION],
            args.repo,
            environment,
        )
    ours = objects(
        [os.path.abspath(args.portolan) if "/" in args.portolan else args.portolan]
        + ["build", "all", "--path", args.root, "--show-secrets", "--kube-version", KUBE_VERSION],
        args.repo,
    )
    theirs, ours = by_name(theirs), by_name(ours)
    reasons, unexplained = collections.Counter(), []
    reasons[WITHOUT_NAMESPACE] = forget_namespaces(theirs, ours)
    for object_name in sorted(set(theirs) | set(ours)):
        these, those = theirs.get(object_name, []), ours.get(object_name, [])
        if not these and object_name.endswith(REPEATS_KEYS):
            reasons[REPEATED_KEYS] += len(those)
            continue
        if len(these) != len(those):
            unexplained.append((object_name, "", f"{len(these)} times", f"{len(those)} times"))
            continue
        for one, two in zip(these, those):
            for difference in differences(one, two):
                reason = reason_for(object_name, difference)
                if reason:
                    reasons[reason] += 1
                else:
                    unexplained.append((object_name, *difference))
    print(f"{sum(map(len, theirs.values()))} objects of flate, {sum(map(len, ours.values()))} of portolan")
    for reason, count in (+reasons).most_common():
        print(f"{count} times: {reason}")
    for object_name, path, one, two in unexplained[: args.limit]:
        print(f"{object_name}{path}\n  flate:    {str(one)[:300]}\n  portolan: {str(two)[:300]}")
    print(f"{len(unexplained)} differences without an explanation")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
