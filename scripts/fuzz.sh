#!/bin/sh
# Runs every fuzz target for FUZZTIME (default 30s), one after the other: go test fuzzes one target at a time.
set -eu

go list ./... | while read -r pkg; do
  listed=$(go test -list '^Fuzz' "$pkg") # compiles without running; its last line is no name
  for target in $(echo "$listed" | grep '^Fuzz' || true); do
    echo "== $pkg $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$pkg" </dev/null
  done
done
