#!/usr/bin/env bash
# Puts the `portolan` binary into a directory: a released one, or one built from the sources beside this script.
#
#   ci/install.sh VERSION|latest|source DIRECTORY
#
# PORTOLAN_RELEASES is the base URL of the releases (…/latest/download, …/download/vVERSION); `source` needs none.
set -euo pipefail

version="$1"
directory="$2"
sources="$(cd "$(dirname "$0")/.." && pwd)"
releases="${PORTOLAN_RELEASES:-}"
archive="portolan-$(uname -m)-unknown-linux-gnu.tar.gz"

fail() {
  echo "error: $1" >&2
  exit 2
}

build() {
  command -v cargo > /dev/null || fail "there is no released binary, and cargo is not installed to build one"
  cargo build --release --locked --manifest-path "$sources/Cargo.toml" -p portolan
  cp "${CARGO_TARGET_DIR:-$sources/target}/release/portolan" "$directory/portolan"
}

release_url() {
  case "$version" in
    latest) echo "$releases/latest/download/$archive" ;;
    *) echo "$releases/download/v${version#v}/$archive" ;;
  esac
}

get() { # url, file
  curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
}

# An archive that exists but cannot be trusted is an error, never a reason to build from source.
unpack() {
  get "$(release_url).sha256" "$directory/$archive.sha256" || fail "\`$archive\` has no checksum beside it"
  (cd "$directory" && sha256sum --check --status "$archive.sha256") || fail "\`$archive\` does not have its checksum"
  tar --extract --gzip --file "$directory/$archive" --directory "$directory" portolan
}

mkdir -p "$directory"
if [ "$version" = source ]; then
  build
elif [ -z "$releases" ]; then
  fail "where releases lie is not known: set PORTOLAN_RELEASES (the action's input \`releases\`), or take the version \`source\`"
elif get "$(release_url)" "$directory/$archive"; then
  unpack
else
  echo "there is no released binary of version \`$version\` for this machine, so one is built" >&2
  build
fi
"$directory/portolan" version
