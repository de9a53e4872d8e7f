#!/usr/bin/env python3
"""Learns a mapping from one document of a layout, reads the rest of the layout with it, and counts what is right.

See README.md.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
# A layout with fewer documents says little about the rest of it.
DOCUMENTS_MIN = 4


def expected(truth):
    """What a person would type from the page, in the form that `ode mapping learn` takes."""
    def printed(cells):
        return {name: cell["value"] for name, cell in cells.items() if cell["visible"]}

    return printed(truth["fields"]) | {"lines": [printed(line) for line in truth.get("lines", [])]}


def ode(options, *arguments):
    """Runs `ode`. What a mapping cannot read is counted as missing, so a refused document is no reason to end."""
    ran = subprocess.run([options.ode, *map(str, arguments)], capture_output=True, text=True)
    if ran.returncode and arguments[0] != "convert":
        sys.exit(f"ode {' '.join(map(str, arguments))}: {ran.stderr}")


def learned(options, teacher, others, folder):
    """Learns from one document, reads the others, and gives what score.py counts in the fields of their headers."""
    truth = json.loads((options.corpus / f"{teacher}.truth.json").read_text())
    answers, mapping, corpus = folder / "expected.json", folder / "learned.toml", folder / "corpus"
    answers.write_text(json.dumps(expected(truth)), encoding="utf-8")
    ode(options, "mapping", "learn", "--pdf", options.corpus / f"{teacher}.pdf", "--expect", answers, "--out", mapping)
    mapping.write_text(mapping.read_text(encoding="utf-8").replace('"draft"', '"live"', 1), encoding="utf-8")
    corpus.mkdir()
    for name in others:
        for ending in (".pdf", ".truth.json"):
            (corpus / f"{name}{ending}").symlink_to((options.corpus / f"{name}{ending}").resolve())
    ode(options, "convert", corpus, "--to", "json", "--page-only", "--mapping", "learned", "--mappings", folder,
        "--out", folder / "read")
    table, figures = options.score.parent / "tables/flat_json.json", folder / "figures.json"
    subprocess.run([sys.executable, options.score, "--corpus", corpus, "--table", table, "--outputs", folder / "read",
                    "--ext", ".json", "--json", figures], check=True, stdout=subprocess.DEVNULL)
    counts = collections.Counter()
    for name, field in json.loads(figures.read_text())["fields"].items():
        if "." not in name:
            counts.update(field)
    return counts


def totals(options, truths, folder):
    """Reads every document as it would be read, and counts by whether its amounts add up and whether ODE says so."""
    ode(options, "convert", options.corpus, "--to", "json", "--page-only", "--out", folder)
    told = collections.Counter()
    for name, truth in truths.items():
        findings = json.loads((folder / f"{name}.json").read_text())["findings"]
        flags = [found for found in findings if found["severity"] == "review" and found["code"].endswith("_MISMATCH")]
        told[truth.get("consistent", True), bool(flags)] += 1
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ode", default=ROOT / "target/release/ode", type=pathlib.Path)
    parser.add_argument("--corpus", default=SHARED / "corpus/invoices", type=pathlib.Path)
    parser.add_argument("--score", default=SHARED / "bench/invoice/score.py", type=pathlib.Path)
    parser.add_argument("--teachers", default=3, type=int, help="documents to learn from, each alone, of a layout")
    options = parser.parse_args()
    truths = {path.name.removesuffix(".truth.json"): json.loads(path.read_text())
              for path in sorted(options.corpus.glob("*.truth.json"))}
    layouts = collections.defaultdict(list)
    for name, truth in truths.items():
        layouts[truth["layout"]].append(name)
    sums = [collections.Counter() for _ in range(options.teachers)]
    for layout, names in layouts.items():
        if len(names) < DOCUMENTS_MIN:
            continue
        for turn in range(options.teachers):
            teacher = names[turn * (len(names) - 1) // max(options.teachers - 1, 1)]
            with tempfile.TemporaryDirectory() as folder:
                others = [name for name in names if name != teacher]
                counts = learned(options, teacher, others, pathlib.Path(folder))
            sums[turn].update(counts)
            print(f"{teacher:44} {counts['right']:4} of {counts['n']:4} fields of {len(others):2} others", flush=True)
    for turn, counts in enumerate(sums, 1):
        given = counts["right"] + counts["wrong"]
        print(f"turn {turn}: {counts['right'] / counts['n']:.1%} right, precision {counts['right'] / given:.1%}")
    with tempfile.TemporaryDirectory() as folder:
        told = totals(options, truths, pathlib.Path(folder))
    print(f"wrong totals told: {told[False, True]} of {told[False, True] + told[False, False]}; "
          f"right ones called wrong: {told[True, True]} of {told[True, True] + told[True, False]}")


if __name__ == "__main__":
    main()
