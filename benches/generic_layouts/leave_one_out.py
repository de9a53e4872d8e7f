#!/usr/bin/env python3
"""Reads each layout of the corpus with a generic mapping that lacks every label which only this layout prints.

    leave_one_out.py --corpus DIR [--ode PATH_OF_THE_EXAMPLE] [--score SCORE.py]
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fold(text):
    return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))


def without(text, unknown):
    """The mapping without the labels that are not in any other layout."""
    def keep(match):
        label = match.group(2)
        plain = fold(label).rstrip(": ")
        return "" if plain in unknown and not label.startswith(("@", "/")) else match.group(0)

    def cleared(match):
        return match.group(1) + re.sub(r'()"([^"\n]*)",? ?', keep, match.group(2)) + match.group(3)

    return re.sub(r"((?:anchor|ignore|until|head) = \[)(.*?)(\](?=\n|, |,\n| \}))", cleared, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--ode", default="target/debug/examples/extract")
    parser.add_argument("--score", type=pathlib.Path, default=ROOT / "../shared/bench/invoice/score.py")
    options = parser.parse_args()
    mapping = (ROOT / "mappings/generic_invoice_v1.toml").read_text(encoding="utf-8")
    truths = {p.name.removesuffix(".truth.json"): json.loads(p.read_text()) for p in options.corpus.glob("*.truth.json")}
    texts = {}
    for name, truth in truths.items():
        rows = subprocess.run([options.ode, options.corpus / f"{name}.pdf", "--rows"], capture_output=True, text=True, check=True)
        texts[name] = re.sub(r"\s+", " ", fold(rows.stdout.replace("¦", " ")))
    labels = {fold(label).rstrip(": ") for label in re.findall(r'"([^"\n]*)"', mapping)}
    printed = {name: {label for label in labels if label and label in text} for name, text in texts.items()}
    layouts = sorted({truth["layout"] for truth in truths.values()})
    out = pathlib.Path(tempfile.mkdtemp())
    for layout in layouts:
        own = [name for name, truth in truths.items() if truth["layout"] == layout]
        others = set().union(*(printed[name] for name in truths if name not in own))
        unknown = set().union(*(printed[name] for name in own)) - others
        folder, source = out / f"mapping-{layout}", out / f"source-{layout}"
        folder.mkdir(), source.mkdir()
        (folder / "generic_invoice_v1.toml").write_text(without(mapping, unknown), encoding="utf-8")
        for name in own:
            shutil.copy(options.corpus / f"{name}.pdf", source)
        subprocess.run([options.ode, source, "--out", out / "json", "--folder", folder, "--mapping", "generic_invoice_v1"], check=True, stderr=subprocess.DEVNULL)
        print(f"{layout:40} {len(own):3} documents, {len(unknown):3} labels taken away")
    table = options.score.parent / "tables/flat_json.json"
    subprocess.run(["python3", options.score, "--corpus", options.corpus, "--table", table, "--outputs", out / "json", "--ext", ".json"], check=True)
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
