#!/usr/bin/env python3
"""The repository's own rules, checked as a test. Each finding names the file, the line and the remedy.

Counts that could not be brought to zero yet stand in tests/tidy/baseline.json; they may only fall, and the
commit that lowers one lowers it there too (`tests/tidy/tidy.py --lower` writes them).
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BASELINE = os.path.join(ROOT, "tests/tidy/baseline.json")

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

# What must not be called, where it may be called all the same, and what to use.
BANNED = [
    (r"\babsl::Now\(", ("services/common/clock", "services/common/call_context", "engine/core/clock"), "the injected clock"),
    (r"std::random_device", ("services/common/request_id", "engine/server/"), "a seed from main"),
    (r"\bgetenv\(", ("services/cli/",), "a flag read in main"),
    (r"std::thread\b(?!::)", ("engine/device/", "engine/executor/", "engine/ipc/", "engine/server/", "engine/worker/",
                         "services/common/", "services/gateway/", "services/cli/"), "the thread's one home"),
    (r"\bLOG\(FATAL\)", (), "a status"),
    (r"std::regex\b", (), "PCRE2 with limits: std::regex recurses without bound"),
    (r"\bsprintf\(|\bstrcpy\(", (), "absl::StrCat or absl::StrFormat"),
    (r"using namespace std;", (), "qualified names"),
    (r"cuda(Malloc|Stream_t|Error_t|Memcpy)", ("engine/device/cuda", "engine/kernels", "engine/comm/nccl"), "engine/device"),
]


def tracked():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    return sorted(f for f in out.splitlines() if os.path.exists(os.path.join(ROOT, f)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def is_source(path):
    return path.endswith((".cc", ".h", ".cu", ".cuh")) and not path.startswith("third_party/")


def has_reason(text):
    """A long file or function says why in its header comment ("Long because ...")."""
    return re.search(r"[Ll]ong because", text) is not None


def long_functions(text):
    """(line, length) of function bodies over the limit: a closing brace at column 0 ends a definition
    that began at column 0 and holds a parameter list; namespaces, classes and data do not count."""
    lines = text.split("\n")
    start = None
    for i, line in enumerate(lines):
        if start is None and re.match(r"[A-Za-z_].*", line) and not re.match(
                r"(namespace|class|struct|enum|union|using|typedef|extern|static constexpr|constexpr|inline constexpr|const|#)\b", line):
            start = i
        if start is not None and re.match(r"(;|\S.*;\s*$)", line) and not line.startswith("}") and i == start:
            start = None
        if line.startswith("}"):
            if start is not None and line.rstrip() == "}" and "(" in "".join(lines[start:start + 6]):
                length = i - start + 1
                before = "\n".join(lines[max(0, start - 8):start])
                if length > FUNCTION_LINES_MAX and not has_reason(before):
                    yield start + 1, length
            start = None


def check_source(path, text, report):
    lines = text.split("\n")
    if len(lines) > FILE_LINES_MAX and not has_reason(text[:2500]):
        report("long_file", path, 1, "%d lines; split it, or say why in the header comment (Long because ...)" % len(lines))
    for line, length in long_functions(text):
        report("long_function", path, line, "a function of %d lines; split it, or say why above it (Long because ...)" % length)
    if path.endswith(".h"):
        guard = "TESSERA_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
        if "#ifndef " + guard not in text:
            report("include_guard", path, 1, "the include guard should be " + guard)
    is_test = re.search(r"(_test|_bench|_fuzz|_fuzzer)\.cc$", path) or path.startswith("tests/")
    for i, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX and len(line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) > COLUMNS_MAX \
                and 'R"' not in line and "http" not in line and not path.endswith(".inc") and not is_test:
            report("columns", path, i, "%d columns; clang-format allows %d" % (len(line), COLUMNS_MAX))
        if is_test:
            continue
        code = line.split("//")[0]
        for pattern, homes, remedy in BANNED:
            if re.search(pattern, code) and not path.startswith(tuple(homes)):
                report("banned_call", path, i, "%s is banned here; use %s" % (re.search(pattern, code).group(0), remedy))
        if re.search(r"TODO(?!\([a-z_]+\): )", line):
            report("todo", path, i, "write TODO(name): and the condition that makes it due")
    own = os.path.splitext(path)[0] + ".h"
    if path.endswith(".cc") and os.path.exists(os.path.join(ROOT, own)):
        first = re.search(r'^#include\s+[<"]([^>"]+)[>"]', text, re.M)
        if first and first.group(1) != own:
            report("own_header_first", path, 1, "include %s first, so that it is known to stand alone" % own)


def check_build(path, text, report):
    if "//visibility:public" in text and not path.startswith(("proto/", "third_party/")):
        report("public", path, 1, "//visibility:public; name the packages instead")
    for match in re.finditer(r"^\s*#\s*(cc_\w+|py_\w+|sh_\w+)\(", text, re.M):
        report("commented_target", path, text[:match.start()].count("\n") + 1, "a target commented out; delete or fix it")
    if re.search(r"(srcs|hdrs)\s*=\s*glob\(", text):
        report("glob", path, 1, "glob in a library; list the files")
    if "linkopts" in text and not path.startswith("third_party/") and "-fsanitize=fuzzer" not in text:
        report("linkopts", path, 1, "linkopts belong to third_party/system")


def check_packages(files, report):
    """Every package has a README, and every source file a target."""
    builds = [f for f in files if f.endswith("BUILD.bazel")]
    packages = {os.path.dirname(f): read(f) for f in builds}
    for package in packages:
        top = package.split("/")[0]
        if top not in ("engine", "services", "tokenizer"):
            continue
        parts = package.split("/")
        if not any("/".join(parts[:n] + ["README.md"]) in files for n in range(1, len(parts) + 1)):
            report("readme", package, 1, "no README.md in the package or above it")
    for path in files:
        if not is_source(path):
            continue
        folder = os.path.dirname(path)
        while folder and folder not in packages:
            folder = os.path.dirname(folder)
        name = os.path.relpath(path, folder) if folder else path
        if '"%s"' % name not in packages.get(folder, ""):
            stem = os.path.splitext(name)[0]
            # Some targets are made in a loop over their stems.
            if not re.search(r'"%s["\.]' % re.escape(stem), packages.get(folder, "")):
                report("dead_file", path, 1, "no target of %s lists it" % (folder or "the root"))


def check_text(path, text, report):
    for match in re.finditer(r"/work/|/root/|\.\./shared", text):
        if not path.startswith("tests/tidy/"):
            report("workplace", path, text[:match.start()].count("\n") + 1, "a path of one machine: %s" % match.group(0))


def main():
    counts, findings = {}, []

    def report(rule, path, line, message):
        counts[rule] = counts.get(rule, 0) + 1
        findings.append((rule, "%s:%d: %s" % (path, line, message)))

    files = tracked()
    for path in files:
        if path.startswith("deploy/demo_model/") or path.endswith(("package-lock.json", ".jsonl", ".gz", ".safetensors", ".model")):
            continue
        if os.path.getsize(os.path.join(ROOT, path)) > 1 << 20:
            report("large_file", path, 1, "over 1 MiB; keep test data small")
            continue
        text = read(path)
        if is_source(path):
            check_source(path, text, report)
        if path.endswith("BUILD.bazel"):
            check_build(path, text, report)
        check_text(path, text, report)
    check_packages(set(files), report)

    with open(BASELINE, encoding="utf-8") as f:
        baseline = json.load(f)
    if "--lower" in sys.argv:
        lowered = {rule: min(baseline[rule], counts.get(rule, 0)) for rule in baseline}
        with open(BASELINE, "w", encoding="utf-8") as f:
            json.dump({rule: n for rule, n in lowered.items() if n}, f, indent=2, sort_keys=True)
            f.write("\n")
        return 0
    failed = 0
    for rule in sorted(set(counts) | set(baseline)):
        count, allowed = counts.get(rule, 0), baseline.get(rule, 0)
        if count > allowed:
            failed = 1
            for found, text in findings:
                if found == rule:
                    print("tidy: %s: %s" % (rule, text))
            print("tidy: %s: %d findings, %d allowed" % (rule, count, allowed))
        elif count < allowed:
            failed = 1
            print("tidy: %s: %d findings, %d allowed; lower it: tests/tidy/tidy.py --lower" % (rule, count, allowed))
    print("tidy: %d files, %s" % (len(files), "rules broken" if failed else "clean"))
    return failed


if __name__ == "__main__":
    sys.exit(main())
