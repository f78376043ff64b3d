#!/bin/sh
# Judge what ci/fetch.py laid out: judge.sh STORE VENV FOLDER
#
# For each request FOLDER/NUMBER gets comment.md, verdict (success or failure), head and base. What judges is this clone's:
# its scripts, and the gpustack of VENV, which was made of its requirements. Of the request there is data only.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
store=$(CDPATH='' cd -- "$1" && pwd -P)
JUDGE_VENV=$(CDPATH='' cd -- "$2" && pwd -P)
mkdir -p -- "$3"
folder=$(CDPATH='' cd -- "$3" && pwd -P)
JUDGE_HOME=$(mktemp -d)
GPUSTACK=$here/isolated
LINT_FORMAT=text
export JUDGE_VENV JUDGE_HOME GPUSTACK LINT_FORMAT
trap 'rm -rf -- "$JUDGE_HOME"' EXIT

# A request that changes which gpustack is run: that version runs nowhere here. Ours shows which files that steer the
# review change, and what changes in dist/ as it stands there, whoever made it.
foreign() { # REQUEST OUT
  verdict=0
  cat >"$2/comment.md" <<END
**This request changes which gpustack is run.** What is in \`dist/\` was made by a program that isn't on the target branch yet.
This review doesn't start it, and nothing here says that the policies render to these files: read them as those of a stranger.
Below are the files that steer the review, then the files of \`dist/\`, judged by the version on the target branch. The
workflow's other check runs the new version without any right; its word is the request's own. After the merge the new
version looks at the result once more.

END
  (cd "$1/pinned" && "$GPUSTACK" diff --base "$base" --fail-on outage --format markdown --budget 20000) \
    >>"$2/comment.md" || verdict=1
  echo >>"$2/comment.md"
  (cd "$1" && "$GPUSTACK" diff --fail-on outage --acceptances tree/acceptances.yaml --format markdown --budget 38000 \
    before/dist tree/dist) >>"$2/comment.md" || verdict=1
  return "$verdict"
}

# In any order, and no more of them begun after half an hour: no stranger's request keeps those of others from their turn.
end=$(($(date +%s) + 1800))
for number in $(find "$store" -mindepth 1 -maxdepth 1 -type d -exec basename {} \; | shuf); do
  [ "$(date +%s)" -lt "$end" ] || {
    echo "request $number waits for a later run" >&2
    continue
  }
  request=$store/$number
  out=$folder/$number
  base=$(cat "$request/base")
  mkdir "$out"
  cp "$request/head" "$request/base" "$out"
  echo "request $number at $(cat "$request/head")" >&2
  if [ -e "$request/refused" ]; then
    { printf '### gpustack: this request is not reviewed\n\n' && cat "$request/refused"; } >"$out/comment.md"
    echo failure >"$out/verdict"
  elif
    if [ -d "$request/pinned" ]; then
      foreign "$request" "$out"
    else
      (cd "$request/tree" && "$here/review.sh" "$base" "$out")
    fi
  then
    echo success >"$out/verdict"
  else
    echo failure >"$out/verdict"
  fi
done
