#!/usr/bin/env python3
"""Counts the test cases of a `bazel test` run from its build events.

Prints "PASSED FAILED" on standard output and the failed targets on standard error. Cases come from each
target's test.xml; a target without a usable one (built but crashed, timed out, failed to build) counts as
one. usage: tests/count_results.py EVENTS.json
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree


def cases_of(outputs):
    """(passed, failed) of a test.xml, or None."""
    for output in outputs:
        if output.get("name") != "test.xml":
            continue
        path = urllib.parse.unquote(urllib.parse.urlparse(output.get("uri", "")).path)
        try:
            root = xml.etree.ElementTree.parse(path).getroot()
        except (OSError, xml.etree.ElementTree.ParseError):
            return None
        cases = [c for c in root.iter("testcase") if c.get("status") != "notrun"]
        failed = sum(1 for c in cases if c.find("failure") is not None or c.find("error") is not None)
        return (len(cases) - failed, failed) if cases else None
    return None


def main():
    results, targets, built = {}, set(), {}
    with open(sys.argv[1], encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            ident = event.get("id", {})
            if "testResult" in ident:
                label = ident["testResult"]["label"]
                status = event.get("testResult", {}).get("status")
                results[label] = (status, cases_of(event.get("testResult", {}).get("testActionOutput", [])))
            if "targetConfigured" in ident and "configured" in event:
                if event["configured"].get("targetKind", "").endswith("_test rule"):
                    targets.add(ident["targetConfigured"]["label"])
            if "targetCompleted" in ident and "completed" in event:
                built[ident["targetCompleted"]["label"]] = event["completed"].get("success", False)
    passed = failed = 0
    for label, (status, cases) in sorted(results.items()):
        good, bad = cases or (0, 0)
        if status == "PASSED":
            passed += max(1, good)
        else:
            passed += good
            failed += max(1, bad)
            print("%s (%s)" % (label, status), file=sys.stderr)
    for label, success in sorted(built.items()):
        if not success and label not in results:
            failed += 1
            print("%s (did not build)" % label, file=sys.stderr)
    print(passed, failed)


if __name__ == "__main__":
    main()
