#!/bin/sh
# Stands for a compiler: puts the mode into the program.
set -eu
echo "building api for $MODE"
mkdir -p "$PORTOLAN_OUT/bin"
sed "s/@MODE@/$MODE/" src/api.sh > "$PORTOLAN_OUT/bin/api"
chmod 755 "$PORTOLAN_OUT/bin/api"
