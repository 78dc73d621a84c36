#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that needs no GPU. The last line is
# "N passed, N failed". Safe to run again; what did not change is not built or run again.
#
# usage: ./test.sh [--quick]
#   --quick   leave out the tests over the running chain (tests/e2e)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

quick=no
case ${1:-} in
  "") ;;
  --quick) quick=yes ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

passed=0
failed=0
failures=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s\n' "$*"; }
count() { passed=$((passed + $1)); failed=$((failed + $2)); }
finish() {
  printf '\n'
  if ((${#failures[@]})); then printf 'failed: %s\n' "${failures[@]}"; fi
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [[ $failed == 0 && $passed != 0 ]]
  exit
}
# Something without which nothing else can run: counts as one failure.
give_up() { failures+=("$1"); count 0 1; finish; }

# One command that counts as one test; its output is shown when it fails.
check() {
  local name=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    echo "ok    $name"
    count 1 0
  else
    cat "$work/check.log"
    echo "FAIL  $name"
    failures+=("$name")
    count 0 1
  fi
}
# A command that prints its own "ok NAME" and "FAIL NAME" lines.
suite() {
  local name=$1
  shift
  "$@" 2>&1 | tee "$work/suite.log"
  local status=${PIPESTATUS[0]} good bad
  good=$(grep -c '^ok ' "$work/suite.log")
  bad=$(grep -c '^FAIL ' "$work/suite.log")
  if [[ $status != 0 && $bad == 0 ]]; then
    echo "FAIL  $name ended with status $status"
    bad=1
  fi
  [[ $bad == 0 ]] || failures+=("$name")
  count "$good" "$bad"
}

step "packages"
deploy/install_packages.sh --with-node || give_up "packages"

step "npm packages of the tests"
if ! cmp -s tests/npm/package-lock.json tests/npm/node_modules/.tessera-lock; then
  (cd tests/npm && npm ci --no-audit --no-fund --loglevel=error) ||
    give_up "npm ci in tests/npm (is the npm registry reachable?)"
  cp tests/npm/package-lock.json tests/npm/node_modules/.tessera-lock
fi
echo "npm: as the lock file says"

step "build and unit tests"
events=$work/events.json
bazel test --show_progress_rate_limit=15 --keep_going --build_event_json_file="$events" //...
bazel_status=$?
read -r good bad < <(python3 tests/count_results.py "$events" 2>"$work/failed_targets")
count "$good" "$bad"
if [[ $bad != 0 ]]; then mapfile -t -O "${#failures[@]}" failures <"$work/failed_targets"; fi
if [[ $bazel_status != 0 && $bad == 0 ]]; then failures+=("bazel test //... (status $bazel_status)"); count 0 1; fi

step "repository rules"
check "proto lint (buf)" tests/npm/node_modules/.bin/buf lint proto
check "shell scripts (shellcheck)" bash -c 'git ls-files -z "*.sh" tessera presubmit .ci/run | xargs -0 shellcheck'
check "tidy" python3 tests/tidy/tidy.py
check "layers" python3 tests/tidy/layers.py

if [[ ! -x bazel-bin/deploy/bin/tessera-gateway ]]; then
  step "end to end"
  echo "not run: the gateway and the supervisor are not built yet (README.md, Status)"
elif [[ $quick == no ]]; then
  for script in tests/e2e/*_suite.py; do
    step "end to end: $(basename "$script" _suite.py)"
    suite "$script" /usr/bin/python3 "$script"  # the one that has python3-grpcio
  done
fi
finish
