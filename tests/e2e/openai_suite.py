#!/usr/bin/env python3
"""The real `openai` npm client against the running chain."""

import os
import subprocess
import sys

from chain import DEMO, Chain

with Chain() as chain:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(subprocess.run(["node", os.path.join(here, "openai_client.mjs"), chain.url,
                             os.path.join(DEMO, "demo_prompts.jsonl")], check=False).returncode)
