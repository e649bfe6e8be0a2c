#!/usr/bin/env bash
# `portolan kustomize build` beside kustomize 5.8.1: whole-process time and peak memory on small and large overlays of the
# shared corpus and on generated ones. KUSTOMIZE names the peer's binary (default: kustomize in PATH), OURS our command
# (default: the dist build of portolan).
set -euo pipefail
cd "$(dirname "$0")/.."
corpus="$(realpath ../shared/corpus)"
kustomize="${KUSTOMIZE:-$(command -v kustomize)}"
if [ -z "${OURS:-}" ]; then
  cargo build --profile dist -p portolan >&2
  OURS="$(realpath target/dist/portolan) kustomize build"
fi
python3 bench/kustomize_cases.py "$corpus" "$kustomize" "$OURS"
