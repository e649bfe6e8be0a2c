#!/usr/bin/env bash
# Writes expected.yaml or refused.txt of every case with a real kustomize (5.8.1): make-expected.sh KUSTOMIZE
set -euo pipefail
kustomize=$(realpath "$1")
cd "$(dirname "$0")"
for case in */*/; do
  (
    cd "$case"
    rm -f expected.yaml refused.txt
    root=.
    [ -d overlay ] && root=overlay
    # shellcheck disable=SC2046 # flags are words
    if ! "$kustomize" build "$root" $([ -f flags.txt ] && cat flags.txt) >expected.yaml 2>refused.txt; then
      rm expected.yaml
      sed -i -n '/Error/,$p' refused.txt
      sed -i "s|$PWD|.|g" refused.txt
    else
      rm refused.txt
    fi
  )
done
