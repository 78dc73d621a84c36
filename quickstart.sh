#!/usr/bin/env bash
# Tessera on this machine, from nothing: installs what is missing, builds, and lets the demo model
# answer three prompts. Safe to run again; the second run builds nothing and takes seconds.
#
# usage: ./quickstart.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if (($# > 0)); then
  sed -n '2,5s/^# \{0,1\}//p' "$0"
  exit 2
fi

step() { printf '\n== %s\n' "$*"; }
fail() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

step "1/3 packages"
deploy/install_packages.sh

step "2/3 build (the first time takes about ten minutes on two cores)"
bazel build --show_progress_rate_limit=10 //deploy/bin ||
  fail "the build failed; its last lines are above"

step "3/3 the demo model answers"
# Ids in, ids out: the services that turn text into ids and back are built, but one command that
# starts them all is not (README.md, Status).
python3 - <<'END'
import json, subprocess

prompts = [json.loads(line) for line in open("deploy/demo_model/demo_prompts.jsonl", encoding="utf-8")]
wanted = [p for p in prompts if p["id"] in ("demo-22", "demo-01", "demo-04")]
lines = "".join(json.dumps({"prompt": p["prompt_ids"], "max_tokens": 200}) + "\n" for p in wanted)
command = ["bazel-bin/deploy/bin/tessera", "generate", "--model", "deploy/demo_model"]
out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
for prompt, line in zip(wanted, out.splitlines()):
    ids = json.loads(line)["ids"]
    print("\n> " + prompt["messages"][-1]["content"])
    print("  tokens %s" % ids)
    print("  as the reference: %s" % (ids == prompt["answer_ids"]))
    print("  which reads: %r" % prompt["answer"])
END

cat <<'END'

== done
The demo model is tiny (15 MB); deploy/demo_model/README.md says what it can and cannot do. Go on with:
  ./tessera generate --model deploy/demo_model      ids in, ids out, on JSON lines
  ./tessera bench decode --model deploy/demo_model  how fast this machine decodes
  ./tessera parse                                   reasoning and tool calls in raw model output
  ./tessera --help                                  everything else; README.md explains
END
