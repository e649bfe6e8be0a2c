#!/usr/bin/env bash
# Puts the `portolan` binary into a directory: a released one, or one built from the sources beside this script.
#
#   ci/install.sh VERSION|latest|source DIRECTORY
set -euo pipefail

version="$1"
directory="$2"
sources="$(cd "$(dirname "$0")/.." && pwd)"
releases="${PORTOLAN_RELEASES:-https://github.com/portolan-dev/portolan/releases}"

build() {
  command -v cargo >/dev/null || { echo "error: no released binary, and cargo is not installed to build one" >&2; exit 2; }
  cargo build --release --locked --manifest-path "$sources/Cargo.toml" -p portolan
  cp "${CARGO_TARGET_DIR:-$sources/target}/release/portolan" "$directory/portolan"
}

download() {
  local archive="portolan-$(uname -m)-unknown-linux-gnu.tar.gz" url
  case "$version" in
    latest) url="$releases/latest/download/$archive" ;;
    *) url="$releases/download/v${version#v}/$archive" ;;
  esac
  curl --fail --silent --show-error --location --retry 3 --output "$directory/$archive" "$url" || return 1
  if curl --fail --silent --location --output "$directory/$archive.sha256" "$url.sha256"; then
    (cd "$directory" && sha256sum --check --quiet "$archive.sha256")
  fi
  tar --extract --gzip --file "$directory/$archive" --directory "$directory" portolan
}

mkdir -p "$directory"
if [ "$version" = source ]; then
  build
elif ! download; then
  echo "no released binary of version \`$version\` for this machine, building one" >&2
  build
fi
"$directory/portolan" version
