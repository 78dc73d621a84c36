#!/usr/bin/env python3
"""Checks that no package reaches one that its layer forbids, not even through others.

Bazel's visibility stops a forbidden direct edge; this stops a chain of allowed ones. The rules are
those of ARCHITECTURE.md, "Layers". Prints each broken rule with the path that breaks it.

usage: tests/tidy/layers.py          (needs bazel; run from anywhere in the checkout)
"""

import collections
import os
import re
import subprocess
import sys

# package prefix -> prefixes that it must never reach
FORBIDDEN = {
    "proto/tessera/engine": ["proto/tessera/tokenizer", "proto/tessera/parser", "proto/tessera/worker"],
    "proto/tessera/worker": ["proto/tessera/engine", "proto/tessera/tokenizer", "proto/tessera/parser"],
    "proto/tessera/tokenizer": ["proto/tessera/parser", "proto/tessera/worker"],
    "proto/tessera/parser": ["proto/tessera/worker"],
    "tokenizer": ["proto", "services", "engine", "third_party/system:grpc"],
    "services/common": ["engine", "tokenizer", "services/clients", "services/tokenizer", "services/parser", "services/gateway"],
    "services/clients": ["engine", "tokenizer", "services/tokenizer", "services/parser", "services/gateway"],
    "services/tokenizer": ["engine", "services/parser", "services/gateway", "proto/tessera/parser/v1:parser"],
    "services/parser": ["engine", "tokenizer", "services/tokenizer", "services/gateway"],
    "services/parser/formats": ["third_party/system:grpc", "proto"],
    "services/gateway": ["engine", "tokenizer", "services/tokenizer", "services/parser"],
    "engine/core": ["engine/kv", "engine/scheduler", "engine/executor", "engine/device", "engine/kernels", "services", "tokenizer", "proto", "third_party/system:grpc"],
    "engine/kv": ["engine/scheduler", "engine/device", "third_party/system:grpc"],
    "engine/scheduler": ["engine/kv", "engine/device", "third_party/system:grpc"],
    "engine/ipc": ["engine/device", "engine/models"],
    "engine/executor": ["engine/device", "engine/comm", "engine/kernels", "engine/models", "third_party/system:grpc"],
    "engine/device": ["engine/models", "engine/weights", "engine/kernels"],
    "engine/comm": ["engine/models", "engine/scheduler"],
    "engine/kernels": ["engine/models", "engine/comm", "engine/layers", "engine/weights"],
    "engine/weights": ["engine/kernels", "engine/models", "engine/scheduler"],
    "engine/layers": ["engine/scheduler", "engine/kv", "engine/ipc", "engine/models"],
    "engine/models": ["engine/scheduler", "engine/kv", "engine/ipc"],
    "engine/sampling": ["engine/models", "engine/scheduler"],
    "engine/worker": ["engine/scheduler", "engine/kv", "engine/executor", "engine/server", "services/clients", "services/tokenizer", "services/parser", "services/gateway"],
    "engine/server": ["engine/device", "engine/kernels", "engine/models", "services/clients", "services/tokenizer", "services/parser", "services/gateway", "tokenizer"],
    "": ["services/cli"],  # nothing depends on the command line
}
# The command line may reach everything it tries, and tests anything; the bundle copies binaries.
EXEMPT = ("services/cli", "tests", "deploy", "third_party")


def workspace_root():
    here = os.path.dirname(os.path.abspath(__file__))
    while not os.path.exists(os.path.join(here, "WORKSPACE")):
        here = os.path.dirname(here)
    return here


def read_edges(root):
    """Edges between the library and binary rules of the workspace, tests left out."""
    query = 'kind("cc_library|cc_binary|genrule", //... except //tests/...)'
    out = subprocess.run(
        ["bazel", "query", "--noshow_progress", "--output=graph", "--nograph:factored", query],
        cwd=root, capture_output=True, text=True, check=False)
    if out.returncode != 0:
        sys.exit("layers: bazel query failed:\n" + out.stderr)
    edges = collections.defaultdict(set)
    testonly = subprocess.run(
        ["bazel", "query", "--noshow_progress", "attr(testonly, 1, //...)"],
        cwd=root, capture_output=True, text=True, check=True).stdout.split()
    for left, right in re.findall(r'"(//[^"]+)" -> "(//[^"]+)"', out.stdout):
        if left not in testonly and right not in testonly:
            edges[left].add(right)
    return edges


def within(label, prefix):
    if ":" in prefix:
        return label == "//" + prefix
    package = label[2:].split(":")[0]
    return not prefix or package == prefix or package.startswith(prefix + "/")


def first_bad_path(edges, start, forbidden):
    """A path from `start` to the first target that a rule forbids, or None."""
    came_from = {start: None}
    queue = collections.deque([start])
    while queue:
        label = queue.popleft()
        if label != start and any(within(label, prefix) for prefix in forbidden):
            path = []
            while label:
                path.append(label)
                label = came_from[label]
            return path[::-1]
        for following in sorted(edges.get(label, ())):
            if following not in came_from:
                came_from[following] = label
                queue.append(following)
    return None


def main():
    edges = read_edges(workspace_root())
    if len(edges) < 20:
        sys.exit("layers: the query saw only %d targets; the check itself is broken" % len(edges))
    broken = 0
    for owner, forbidden in FORBIDDEN.items():
        # services/common:field_error is the one leaf that engine/server may use with the rest of
        # services/common; both stand in "services" but not in what engine/server forbids.
        inner = [o for o in FORBIDDEN if o != owner and owner and o.startswith(owner + "/")]
        for label in sorted(edges):
            if not within(label, owner) or any(within(label, o) for o in inner):
                continue
            if any(within(label, prefix) for prefix in EXEMPT):
                continue
            path = first_bad_path(edges, label, [f for f in forbidden if not within(label, f)])
            if path:
                broken += 1
                print("layers: %s must not reach %s:\n    %s" % (owner or "anything", path[-1], " -> ".join(path)))
    print("layers: %d targets, %d rules, %d broken" % (len(edges), len(FORBIDDEN), broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
