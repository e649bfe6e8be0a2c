#!/usr/bin/env bash
# Executes charts' templates with our engine and with Helm's, and prints rows for the table.
set -euo pipefail
cd "$(dirname "$0")/.."
corpus="${CORPUS:-../shared/corpus}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

(cd bench/go-templates && go build -o "$work/go-templates" .) >&2
dumps=()
measure_go() { # name, chart, values
  "$work/go-templates" "$1" "$corpus/charts/$2" "$3" "$work/$1.json" >> "$work/go"
  dumps+=("$1=$work/$1.json")
}
app_values=("$corpus"/values/app-template__*__bazarr__*.yaml)
measure_go bitnami-mariadb bitnami+charts/mariadb ""
measure_go bitnami-kong bitnami+charts/kong ""
measure_go app-template bjw-s-labs+helm-charts/app-template "${app_values[0]}"
measure_go prometheus prometheus-community+helm-charts/prometheus ""
measure_go vault hashicorp+vault-helm/vault ""
measure_go consul-demo hashicorp+consul-k8s/demo ""
measure_go linkerd2-cni linkerd+linkerd2/linkerd2-cni ""

cargo bench -q -p portolan-gotmpl --bench templates -- "${dumps[@]}" > "$work/ours"
cat "$work/go" "$work/ours" >&2
while read -r name go_execute go_allocations go_render && read -r -u 3 _ execute allocations render equal files; do
  row() { # what, ours, peer, target
    awk -v what="$1" -v ours="$2" -v peer="$3" -v target="$4" 'BEGIN {
      printf "| %s | %.0f µs | %.0f µs | %.1f× | %s |\n", what, ours / 1000, peer / 1000, peer / ours, target }'
  }
  case "$name" in
    app-template) target="≥ 20× (much tpl)" ;;
    *) target="≥ 5×" ;;
  esac
  row "execute $name, $equal of $files files equal" "$execute" "$go_execute" "$target"
  awk -v n="$name" -v ours="$allocations" -v peer="$go_allocations" 'BEGIN {
    printf "| allocations of executing %s | %d | %d | %.1f× fewer | |\n", n, ours, peer, peer / ours }'
  row "parse and execute $name" "$render" "$go_render" ""
done < "$work/go" 3< "$work/ours"
