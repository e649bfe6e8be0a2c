#!/usr/bin/env bash
# `portolan helm template` beside helm 3.17.3 over the shared corpus: whole-process time and peak memory of each case,
# then one parsed chart with 1,000 value sets in one process. HELM names the peer's binary (default: helm in PATH).
set -euo pipefail
cd "$(dirname "$0")/.."
corpus="$(realpath ../shared/corpus)"
helm="${HELM:-$(command -v helm)}"
cargo build --profile dist -p portolan >&2
cargo build --profile dist -p portolan-helm --example many >&2
python3 bench/helm_cases.py "$corpus" "$helm" "$(realpath target/dist/portolan)" "${LIMIT:-120}"
for chart in bjw-s-labs+helm-charts/app-template bitnami+charts/superset argoproj+argo-helm/argo-rollouts prometheus-community+helm-charts/prometheus; do
  target/dist/examples/many "$corpus/charts/$chart" 1000 target/dist/portolan
done
