"""Reads one JSON document on stdin, and tells what happens on the descriptor that ODE_EVENTS_FD names."""

import json
import os
import sys

events = os.fdopen(int(os.environ["ODE_EVENTS_FD"]), "w", buffering=1)


def tell(**event):
    print(json.dumps(event), file=events)


payload = json.load(sys.stdin)
name, password = payload["input"]["name"], payload["secrets"]["password"]

tell(t="step", id="prepare", state="started")
if "prepared" not in payload["checkpoints"]:
    tell(t="checkpoint", key="prepared", data={})
tell(t="step", id="prepare", state="done")

tell(t="step", id="greet", state="started")
print(f"The password has {len(password)} characters; it is hidden here: {password}")
tell(t="progress", percent=50, message="Half way")
tell(t="step", id="greet", state="done")

tell(t="result", success=True, message=f"Greeted {name}", data={"greeting": f"Hello, {name}!"})
