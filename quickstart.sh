#!/usr/bin/env bash
# Tessera's main job on this machine, from nothing: installs what is missing, builds, starts the
# whole chain (gateway, parser, tokenizer, engine, worker) on the demo model and holds three short
# conversations. Safe to run again; the second run builds nothing and takes seconds.
#
# usage: ./quickstart.sh [--keep]
#   --keep   leave the chain running at the end (Ctrl-C stops it)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

keep=no
case ${1:-} in
  "") ;;
  --keep) keep=yes ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }
fail() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

step "1/4 packages"
deploy/install_packages.sh

step "2/4 build (the first time takes about ten minutes on two cores)"
bazel build --show_progress_rate_limit=10 //deploy/bin ||
  fail "the build failed; its last lines are above"

step "3/4 start the chain"
work=$(mktemp -d)
up_pid=
stop() {
  if [[ -n $up_pid ]] && kill -0 "$up_pid" 2>/dev/null; then
    kill -TERM "$up_pid" 2>/dev/null || true
    wait "$up_pid" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

./tessera up --json --port 0 --log-dir "$work/logs" >"$work/ready.json" 2>"$work/up.log" &
up_pid=$!
for ((i = 0; i < 600; i++)); do
  [[ -s $work/ready.json ]] && break
  kill -0 "$up_pid" 2>/dev/null || break
  sleep 0.1
done
if ! [[ -s $work/ready.json ]]; then
  tail -n 20 "$work/up.log" >&2
  fail "the chain did not come up within 60 s; its log is above"
fi
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$work/ready.json" | head -n 1; }
parser=$(field parser_address)
gateway=$(field gateway_url)
tail -n 12 "$work/up.log"

step "4/4 three conversations, streamed"
ask() { printf '\n> %s\n' "${*: -1}"; ./tessera chat --address "$parser" "$@"; }
ask "380-248=?"
ask --tools deploy/demo_model/tools.json "Roll a die with 20 sides"
ask "巴西首都"

cat <<END

== done
The demo model is tiny (15 MB) and knows only what deploy/demo_model/README.md lists. Go on with:
  ./tessera up                              start the chain and keep it running
  ./tessera chat                            talk to it from another terminal
  curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"messages":[{"role":"user","content":"4*7=?"}],"stream":true}'
  ./tessera bench decode                    how fast this machine decodes
  ./tessera --help                          everything else; README.md explains
END
if [[ $keep == yes ]]; then
  echo "The chain of this run is at $gateway (parser $parser); Ctrl-C stops it."
  wait "$up_pid"
fi
