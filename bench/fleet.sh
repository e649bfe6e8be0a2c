#!/usr/bin/env bash
# A run of four steps that change nothing on 500 nodes, beside Ansible and pyinfra over local connections; what 2,000 connected
# agents cost a server; and how long a run for 5,000 nodes with 50 steps takes to be made. The agents are one process with real
# streams, TLS, journals and root directories, on the same cores as the server. BIN_DIRECTORY names built programs (portolan and
# examples/swarm); NODES, CONNECTED and TARGETS make it smaller, ANSIBLE_HOSTS is how many hosts Ansible gets.
set -euo pipefail
cd "$(dirname "$0")/.."
nodes="${NODES:-500}" connected="${CONNECTED:-2000}" targets="${TARGETS:-5000}" hosts="${ANSIBLE_HOSTS:-50}" runs="${RUNS:-5}"
tools="${PORTOLAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan}/tools"
if [ -z "${BIN_DIRECTORY:-}" ]; then
  cargo build --quiet --profile dist --bin portolan >&2
  cargo build --quiet --profile dist -p portolan-agent --example swarm >&2
  BIN_DIRECTORY="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist"
fi
portolan="$BIN_DIRECTORY/portolan"
ulimit -n 20000

work="$(mktemp -d)"
server="" swarm=""
trap 'for one in $server $swarm; do kill -9 "$one" 2>/dev/null || true; done; rm -rf "$work"' EXIT
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)" >&2

now() { date +%s.%N; }
median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }
cpu_of() { # pid: user and system time in seconds
  awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$1/stat"
}
resident_of() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; } # in kB

port=17543 url="https://localhost:17543"
export PORTOLAN_SERVER="$url" PORTOLAN_TOKEN_FILE="$work/server/admin.token" PORTOLAN_CA_FILE="$work/server/ca.pem"
"$portolan" serve --data "$work/server" --listen "127.0.0.1:$port" 2> "$work/server.log" & server=$!
until "$portolan" fleet status > /dev/null 2>&1; do sleep 0.1; done

objects() {
  printf 'apiVersion: v1alpha\nkind: Config\nmetadata: {name: server}\nspec: {limits: {requestsPerSecond: 100000, requestBurst: 100000}}\n---\n'
  printf 'apiVersion: v1alpha\nkind: NodeGroup\nmetadata: {name: swarm}\nspec: {selector: swarm=true}\n---\n'
  printf 'apiVersion: v1alpha\nkind: NodeGrant\nmetadata: {name: swarm}\nspec: {groups: [swarm], namespaces: [default]}\n'
}
objects > "$work/objects.yaml"
"$portolan" fleet apply -f "$work/objects.yaml" > /dev/null

# Connects nodes; those of an earlier swarm in the same directory come back under their names.
start_swarm() { # nodes [number of the first]
  local made
  made="$("$portolan" fleet join-token create --uses "$1" --label swarm=true -o json)"
  local pin token
  pin="$(printf '%s' "$made" | python3 -c 'import json,sys; print(json.load(sys.stdin)["caPin"])')"
  token="$(printf '%s' "$made" | python3 -c 'import json,sys; print(json.load(sys.stdin)["token"])')"
  : > "$work/swarm.out"
  printf '%s' "$token" | "$BIN_DIRECTORY/examples/swarm" "$url" "$pin" "$portolan" "$work/nodes" "${2:-0}" "$1" > "$work/swarm.out" 2>> "$work/swarm.log" & swarm=$!
  until grep -q connected "$work/swarm.out"; do
    kill -0 "$swarm" 2>/dev/null || { cat "$work/swarm.log" >&2; exit 1; }
    sleep 0.05
  done
}
stop_swarm() { kill "$swarm"; wait "$swarm" 2>/dev/null || true; swarm=""; }

book() { # steps
  printf 'apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: bench, namespace: default}\nspec:\n  target: {group: swarm}\n  strategy: free\n  steps:\n'
  for step in $(seq 1 4 "$1"); do
    printf '  - {name: place-%s, directory: {path: /srv/web-%s, mode: "0755"}}\n' "$step" "$step"
    printf '  - {name: config-%s, file: {path: /srv/web-%s/config, content: "port = 8080\\n", mode: "0644"}}\n' "$step" "$step"
    printf '  - {name: line-%s, line: {path: /srv/web-%s/config, line: "port = 8080"}}\n' "$step" "$step"
    printf '  - {name: link-%s, link: {path: /srv/web-%s/current, to: config}}\n' "$step" "$step"
  done
}

# 500 nodes: the first run makes everything, the next ones change nothing.
start_swarm "$nodes"
book 4 > "$work/book.yaml"
"$portolan" fleet run -f "$work/book.yaml" -o json > "$work/first.json"
for _ in $(seq "$runs"); do
  before="$(cpu_of "$swarm")"; began="$(now)"
  "$portolan" fleet run -f "$work/book.yaml" -o json > "$work/run.json"
  ended="$(now)"; after="$(cpu_of "$swarm")"
  python3 - "$work/run.json" "$nodes" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
assert len(run["nodes"]) == int(sys.argv[2]), len(run["nodes"])
states = {node["state"] for node in run["nodes"]}
assert states == {"ok"}, states
PYTHON
  awk -v a="$began" -v b="$ended" 'BEGIN { print b - a }' >> "$work/times"
  awk -v a="$before" -v b="$after" -v n="$nodes" 'BEGIN { print (b - a) * 1000 / (n * 4) }' >> "$work/cpu"
done
ours="$(median < "$work/times")"
cpu="$(median < "$work/cpu")"
stop_swarm

# Ansible: the same four steps on so many hosts, each with a directory of its own.
mkdir -p "$work/ansible"
for host in $(seq "$hosts"); do
  mkdir -p "$work/ansible/host-$host"
  printf 'host-%s ansible_connection=local place=%s/ansible/host-%s ansible_python_interpreter=%s/ansible-venv/bin/python3\n' "$host" "$work" "$host" "$tools"
done > "$work/inventory"
cat > "$work/play.yml" <<'PLAY'
- hosts: all
  gather_facts: false
  tasks:
  - file: {path: "{{ place }}/web", state: directory, mode: "0755"}
  - copy: {dest: "{{ place }}/web/config", content: "port = 8080\n", mode: "0644"}
  - lineinfile: {path: "{{ place }}/web/config", line: "port = 8080"}
  - file: {src: config, dest: "{{ place }}/web/current", state: link}
PLAY
[ -x "$tools/ansible-venv/bin/ansible-playbook" ] || { python3 -m venv "$tools/ansible-venv"; "$tools/ansible-venv/bin/pip" install --quiet ansible-core==2.19.5; }
play="$tools/ansible-venv/bin/ansible-playbook -i $work/inventory -f 50 $work/play.yml"
export ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_HOME="$work/ansible-home"
$play > "$work/ansible.log"
began="$(now)"; $play > "$work/ansible.log"; ended="$(now)"
! grep -q 'changed=[1-9]' "$work/ansible.log"
ansible="$(awk -v a="$began" -v b="$ended" 'BEGIN { print b - a }')"

# pyinfra has one host that is this machine: it gets all the steps.
[ -x "$tools/pyinfra-venv/bin/pyinfra" ] || { python3 -m venv "$tools/pyinfra-venv"; "$tools/pyinfra-venv/bin/pip" install --quiet pyinfra==3.10; }
cat > "$work/deploy.py" <<PYINFRA
from io import StringIO
from pyinfra.operations import files
for host in range(1, $hosts + 1):
    place = f"$work/pyinfra/host-{host}"
    files.directory(name=f"place {host}", path=f"{place}/web", mode="755")
    files.put(name=f"config {host}", src=StringIO("port = 8080\n"), dest=f"{place}/web/config", mode="644")
    files.line(name=f"line {host}", path=f"{place}/web/config", line="port = 8080")
    files.link(name=f"link {host}", path=f"{place}/web/current", target="config")
PYINFRA
mkdir -p "$work/pyinfra"
deploy="$tools/pyinfra-venv/bin/pyinfra -y @local $work/deploy.py"
$deploy > "$work/pyinfra.log" 2>&1
began="$(now)"; $deploy > "$work/pyinfra.log" 2>&1; ended="$(now)"
pyinfra="$(awk -v a="$began" -v b="$ended" 'BEGIN { print b - a }')"

row() { # peer, its seconds, target
  awk -v nodes="$nodes" -v ours="$ours" -v peer="$2" -v hosts="$hosts" -v name="$1" -v target="$3" 'BEGIN {
    mine = ours * 1000 / (nodes * 4); its = peer * 1000 / (hosts * 4)
    printf "| fleet: 4 steps that change nothing, %d nodes | %.2f s, %.2f ms a step | %s on %d: %.1f s, %.0f ms a step | %.0f× | %s |\n", nodes, ours, mine, name, hosts, peer, its, its / mine, target
  }'
}
row "ansible-core 2.19.5" "$ansible" "≤ 3 s, ≥ 20×"
row "pyinfra 3.10" "$pyinfra" "–"
printf '| fleet: CPU of an agent for a step that changes nothing | %.2f ms | | | ≤ 1 ms |\n' "$cpu"

# 2,000 connected agents.
before="$(resident_of "$server")"
start_swarm "$connected"
after="$(resident_of "$server")"
awk -v a="$before" -v b="$after" -v n="$connected" -v took="$(sed 's/connected in //' "$work/swarm.out")" 'BEGIN {
  printf "| fleet: %d connected agents | %.0f kB of the server each, connected in %s | | | ≤ 50 kB |\n", n, (b - a) / n, took
}'

# A run for 5,000 nodes: the answer comes when everything about it is checked, frozen and stored.
# A server takes 3,000 connections of one address, so the nodes come in parts; the run is for those that are away, too.
stop_swarm
for first in $(seq "$connected" 1000 $((targets - 1))); do
  start_swarm $((targets - first < 1000 ? targets - first : 1000)) "$first"
  stop_swarm
done
book 50 > "$work/large.yaml"
python3 - "$work/large.yaml" > "$work/request.json" <<'PYTHON'
import json, sys
print(json.dumps({"mode": "check", "book": {"file": "large.yaml", "text": open(sys.argv[1]).read(), "files": {}}}))
PYTHON
kill "$server"; wait "$server" 2>/dev/null || true
"$portolan" serve --data "$work/server" --listen "127.0.0.1:$port" 2>> "$work/server.log" & server=$!
until "$portolan" fleet status > /dev/null 2>&1; do sleep 0.1; done
began="$(now)"
curl -sf --cacert "$work/server/ca.pem" -H "Authorization: Bearer $(cat "$work/server/admin.token")" -H 'Content-Type: application/json' \
  -X POST "$url/api/v1alpha/namespaces/default/taskbooks/bench/run" --data-binary "@$work/request.json" > "$work/made.json"
ended="$(now)"
python3 - "$work/made.json" "$targets" <<'PYTHON'
import json, sys
made = json.load(open(sys.argv[1]))
assert len(made["spec"]["nodes"]) == int(sys.argv[2]), len(made["spec"]["nodes"])
PYTHON
peak="$(awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$server/status")"
awk -v a="$began" -v b="$ended" -v n="$targets" -v peak="$peak" 'BEGIN {
  printf "| fleet: a run of 50 steps for %d nodes is made | %.2f s, the server has %d MB at most | | | ≤ 5 s, ≤ 500 MB |\n", n, b - a, peak
}'
echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)" >&2
