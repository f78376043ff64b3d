#!/bin/sh
# What CI asks of a change: review.sh BASE FOLDER
#
# Writes FOLDER/comment.md (what changes against BASE, for people) and FOLDER/lint.xml (JUnit), and fails when dist/ is
# stale, when a rule has something against a policy, when kubeconform, where it is installed, refuses an object, or when
# a lock isn't complete. Everything is looked at first.
set -eu
base=$1
folder=$2
mkdir -p "$folder"
failed=0

code=0
gpustack diff --base "$base" --format markdown --budget 60000 >"$folder/comment.md" || code=$?
if [ "$code" -gt 1 ]; then # 1: something changes
  failed=1
  printf '### gpustack: the change could not be rendered\n\nThe log of the job says why.\n' >"$folder/comment.md"
fi
gpustack lint --fail-on warning --format "${LINT_FORMAT:-text}" --report "junit=$folder/lint.xml" || failed=1
gpustack check || failed=1
if command -v kubeconform >/dev/null; then
  gpustack validate || failed=1
fi
if [ -e images.lock ]; then
  gpustack lock --check --offline || failed=1
fi
exit "$failed"
