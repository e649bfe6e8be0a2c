#!/usr/bin/env python3
"""Measures `kustomize build` and ours in the same run: median whole-process time and peak memory, as Markdown rows.

  kustomize_cases.py CORPUS KUSTOMIZE 'OUR COMMAND'

KUSTOMIZE_OVERLAYS names more large overlays, with colons between: checkouts of argoproj/argo-cd (manifests/ha/cluster-install),
kserve/kserve (config/overlays/all) and the like, whose definitions of kinds the corpus leaves out for their size.
"""
import os, shlex, statistics, subprocess, sys, tempfile, time

corpus, peer, ours = sys.argv[1], [sys.argv[2], 'build'], shlex.split(sys.argv[3])
RUNS = int(os.environ.get('RUNS', '5'))


# Overlays that people know, as far as the corpus has them.
NAMED = {
    'Argo CD, namespace install': 'kustomize/argoproj+argo-cd/manifests/namespace-install',
    'KServe models web application': 'kustomize/kubeflow+manifests/applications/kserve/models-web-app/base',
}


def run(command, directory):
    """(seconds, output) of one run."""
    start = time.monotonic()
    done = subprocess.run(command + [directory], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f'{command} fails on {directory}')
    return time.monotonic() - start, done.stdout


def memory(command, directory):
    """Peak KiB. Asked of GNU time: a child of Python counts Python's own memory as its peak."""
    done = subprocess.run(['/usr/bin/time', '-f', '%M'] + command + [directory], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return int(done.stderr.split()[-1])


def median(command, directory):
    runs = [run(command, directory) for _ in range(RUNS)]
    return statistics.median(r[0] for r in runs), memory(command, directory), runs[0][1]


def compare(name, directory, target):
    a, b = median(ours, directory), median(peer, directory)
    if a[2] != b[2]:
        sys.exit(f'{name}: the outputs differ')
    row = f'{a[0] * 1000:.1f} ms, {a[1] / 1024:.0f} MB | {b[0] * 1000:.0f} ms, {b[1] / 1024:.0f} MB'
    print(f'| kustomize: {name} | {row} | {b[0] / a[0]:.0f}× time, {b[1] / a[1]:.0f}× memory | {target} |', flush=True)
    return a[0]


def generate(directory, count):
    """An overlay of `count` objects with a patch for every tenth, labels, a prefix and references."""
    os.makedirs(directory)
    objects, patches = [], []
    for n in range(count // 2):
        objects.append(f'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cfg-{n}\ndata:\n  a: "{n}"\n  b: |\n    line one\n    line two\n')
        objects.append(f'''apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{n}
spec:
  replicas: 1
  selector:
    matchLabels: {{app: app-{n}}}
  template:
    metadata:
      labels: {{app: app-{n}}}
    spec:
      containers:
      - name: main
        image: example/app:1.{n}
        env:
        - {{name: A, value: "1"}}
        envFrom:
        - configMapRef: {{name: cfg-{n}}}
        ports:
        - containerPort: 80
''')
        if n % 5 == 0:
            patches.append(f'- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {{name: app-{n}}}\n    spec:\n      replicas: 3\n      template:\n        spec:\n          containers:\n          - {{name: main, image: "example/app:2"}}\n          - {{name: side, image: side}}\n')
    with open(f'{directory}/objects.yaml', 'w') as f:
        f.write('---\n'.join(objects))
    with open(f'{directory}/kustomization.yaml', 'w') as f:
        f.write('resources: [objects.yaml]\nnamePrefix: p-\nnamespace: team\nlabels:\n- pairs: {owner: ops}\n  includeSelectors: true\npatches:\n' + ''.join(patches))


def generate_bases(directory, count):
    """`count` objects in bases of ten, each with a prefix and labels of its own."""
    for base in range(count // 10):
        os.makedirs(f'{directory}/b{base}')
        with open(f'{directory}/b{base}/objects.yaml', 'w') as f:
            f.write('---\n'.join(f'apiVersion: v1\nkind: Service\nmetadata: {{name: s{n}}}\nspec: {{selector: {{app: s{n}}}}}\n' for n in range(10)))
        with open(f'{directory}/b{base}/kustomization.yaml', 'w') as f:
            f.write(f'resources: [objects.yaml]\nnamePrefix: b{base}-\nlabels:\n- pairs: {{base: b{base}}}\n')
    with open(f'{directory}/kustomization.yaml', 'w') as f:
        f.write('namespace: all\nresources:\n' + ''.join(f'- b{base}\n' for base in range(count // 10)))


def own_time(directory):
    """Our median time alone: the peer would take minutes."""
    return statistics.median(run(ours, directory)[0] for _ in range(RUNS))


def largest(count):
    """The overlays with the largest output."""
    import json
    with open(f'{corpus}/cases-kustomize.json') as f:
        cases = json.load(f)
    cases.sort(key=lambda c: os.path.getsize(f"{corpus}/{c['expected']}"))
    return cases[len(cases) // 2]['dir'], [c['dir'] for c in cases[-count:]]


if os.path.isdir(corpus):
    small, large = largest(2)
    compare(f'small overlay ({small.split("/", 1)[1]})', f'{corpus}/{small}', '≥ 5×, memory ≥ 5×')
    for directory in large:
        compare(f'large overlay ({directory.split("/", 1)[1]})', f'{corpus}/{directory}', '≥ 20×, memory ≥ 5×')
    for name, directory in NAMED.items():
        compare(name, f'{corpus}/{directory}', '≥ 5×, memory ≥ 5×')
for directory in filter(None, os.environ.get('KUSTOMIZE_OVERLAYS', '').split(':')):
    name = '/'.join(os.path.abspath(directory).split('/')[-3:])
    compare(f'large overlay ({name})', directory, '≥ 20×, memory ≥ 5×')
with tempfile.TemporaryDirectory() as top:
    times = {}
    generate_bases(f'{top}/bases', 2000)
    compare('2,000 resources in 200 bases', f'{top}/bases', '≥ 20×, memory ≥ 5×')
    for count in (1000, 2000, 4000):
        generate(f'{top}/{count}', count)
        times[count] = compare(f'{count} generated resources with patches', f'{top}/{count}', '≥ 20×, memory ≥ 5×')
    generate(f'{top}/8000', 8000)
    times[8000] = own_time(f'{top}/8000')
    print(f'| kustomize: growth from 1,000 to 8,000 resources | {times[8000] / times[1000]:.1f}× time for 8× resources | | | linear |')
