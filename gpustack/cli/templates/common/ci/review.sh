#!/bin/sh
# What CI asks of a change: review.sh BASE FOLDER, run where the change lies
#
# Writes FOLDER/comment.md (what changes against the commit BASE, for people) and FOLDER/lint.xml (JUnit), and fails when
# something changes that an owner has to accept first, when dist/ is stale, when a rule objects to a policy,
# when kubeconform, where it is installed, refuses an object, or when a lock isn't complete. Everything is looked at first,
# unless gpustack itself can't be installed or run: then that alone is said.
#
# GPUSTACK names the program; ci/judge.sh, which looks at the requests of others, gives the one of the base. The tree is
# data to it, and this script is never taken from there then.
set -eu
gpustack=${GPUSTACK:-$(dirname -- "$0")/gpustack}
folder=$2
mkdir -p -- "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd -P)
failed=""

asks() { # WHAT COMMAND...: note WHAT where COMMAND fails
  what=$1
  shift
  "$@" || failed="$failed
- $what"
}

case $1 in
*[!0]* | "") base=$1 ;;
*) base=HEAD ;; # only zeros: the site's word for "there was nothing before"
esac
commit=$(git -c core.fsmonitor=false rev-parse --verify --quiet --end-of-options "$base^{commit}") || {
  echo "error: this clone has no commit $base: fetch the whole history" >&2
  exit 4
}

version=$("$gpustack" version) && [ -n "$version" ] || {
  failed="gpustack can't be installed or run, so nothing was looked at; the log of the job says why."
  printf '**Not passed:**\n\n- %s\n' "$failed" >"$folder/comment.md"
  printf 'not passed:\n- %s\n' "$failed" >&2
  exit 1
}

code=0
"$gpustack" diff --base "$commit" --fail-on outage --format markdown --budget 50000 >"$folder/diff.md" || code=$?
[ -s "$folder/diff.md" ] || code=70 # nothing at all was said
case $code in
0) ;;
1) asks "Something changes that an owner has to accept first (\`gpustack accept\`)." false ;;
*)
  asks "The change could not be rendered; the log of the job says why." false
  printf '### gpustack: the change could not be rendered\n' >"$folder/diff.md"
  ;;
esac
asks "\`gpustack lint\`: a rule objects to a policy." \
  "$gpustack" lint --fail-on warning --format "${LINT_FORMAT:-text}" --report "junit=$folder/lint.xml" \
  --report "text=$folder/lint.txt"
asks "\`gpustack check\`: dist/ is not what the policies render to." "$gpustack" check
if command -v kubeconform >/dev/null; then
  asks "\`gpustack validate\`: kubeconform refuses an object." "$gpustack" validate
fi
if [ -e images.lock ]; then
  asks "\`gpustack lock --check\`: images.lock is not complete." "$gpustack" lock --check --offline
fi
for owners in .github/CODEOWNERS CODEOWNERS; do
  if grep -qs '<edit' "$owners"; then
    asks "$owners names no owner yet: edit its lines, or delete the file." false
  fi
done

{
  [ -z "$failed" ] || printf '**Not passed:**\n%s\n\n' "$failed"
  cat "$folder/diff.md"
  case $failed in
  *"gpustack lint"*) # indented, so that no policy ends the block; as much as a comment has room for
    printf '\n### gpustack lint\n\n'
    LC_ALL=C tr -cd '\11\12\40-\176' <"$folder/lint.txt" | cut -c 1-200 | head -n 50 | sed 's/^/    /'
    ;;
  esac
} >"$folder/comment.md"
rm -f "$folder/diff.md" "$folder/lint.txt"
[ -z "$failed" ] || {
  printf 'not passed:%s\n' "$failed" >&2
  exit 1
}
