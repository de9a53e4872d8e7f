#!/usr/bin/env python3
"""Compares the words that `ode-pdf` finds with those of pdftotext, file by file.

A yardstick, not the truth: pdftotext has faults of its own. See README.md.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unicodedata

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY.parent / "shared" / "corpus"
DISTINCT_WORDS_MIN = 5
CPU_SECONDS_MAX = 20
MEMORY_MB_MAX = 512


def run(command):
    """Runs a command; gives its exit code, output, errors, CPU seconds and peak memory in MB."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return (
            process.returncode,
            out.read().decode("utf-8", "replace"),
            err.read().decode("utf-8", "replace"),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss / 1024,
        )


def words(text):
    """A bag of words; format characters (soft hyphens, direction marks, zero-width spaces) count for nothing."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return collections.Counter(re.split(r"\s+", text.strip())) if text.strip() else collections.Counter()


def f1(ours, theirs):
    shared = sum((ours & theirs).values())
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * shared / total if total else 1.0


def score(path, binary):
    code, text, errors, cpu, memory = run([binary, str(path)])
    their_code, their_text, _, their_cpu, _ = run(["pdftotext", "-q", str(path), "-"])
    ours, theirs = words(text), words(their_text)
    is_counted = their_code == 0 and len(theirs) >= DISTINCT_WORDS_MIN
    return {
        "file": str(path),
        "code": code,
        "error": errors.strip().splitlines()[-1] if errors.strip() else "",
        "panic": "panicked" in errors,
        "pages": their_text.count("\f"),
        "f1": f1(ours, theirs) if is_counted else None,
        "words": sum(ours.values()),
        "their_words": sum(theirs.values()),
        "cpu": cpu,
        "their_cpu": their_cpu,
        "memory_mb": memory,
        "missing": dict((theirs - ours).most_common(12)),
        "extra": dict((ours - theirs).most_common(12)),
    }


def report(name, results):
    counted = [result["f1"] for result in results if result["f1"] is not None]
    bad = [result for result in results if result["panic"] or result["code"] not in (0, 2)]
    heavy = [r for r in results if r["cpu"] > CPU_SECONDS_MAX or r["memory_mb"] > MEMORY_MB_MAX]
    cpu, their_cpu = (sum(result[key] for result in results) for key in ("cpu", "their_cpu"))
    pages = sum(result["pages"] for result in results)
    print(f"{name}: {len(results)} files, {len(counted)} scored")
    if counted:
        print(
            f"  word F1 mean {statistics.mean(counted):.4f}, median {statistics.median(counted):.4f},"
            f" below 0.9: {sum(f < 0.9 for f in counted)}, below 0.5: {sum(f < 0.5 for f in counted)}"
        )
    print(f"  refused {sum(r['code'] == 2 for r in results)}, crashed or panicked {len(bad)}, over the limits {len(heavy)}")
    print(
        f"  CPU {cpu:.2f} s (pdftotext {their_cpu:.2f} s), {pages / cpu:.0f} pages per CPU s"
        f" (pdftotext {pages / their_cpu:.0f}), slowest {max(r['cpu'] for r in results):.2f} s,"
        f" largest {max(r['memory_mb'] for r in results):.0f} MB"
    )
    for result in bad + heavy:
        print(f"  ! {result['file']}: {result['error']} cpu {result['cpu']:.1f} memory {result['memory_mb']:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="files or folders (default: the shared corpus)")
    parser.add_argument("--binary", default=str(target_folder() / "release" / "examples" / "words"))
    parser.add_argument("--worst", type=int, default=0, help="show so many of the worst files, with their differences")
    parser.add_argument("--refused", action="store_true", help="show every refusal")
    parser.add_argument("--json", type=pathlib.Path, help="write all results here")
    arguments = parser.parse_args()
    folders = arguments.paths or [CORPUS / "pdf", CORPUS / "invoices"]
    everything = []
    for folder in folders:
        files = sorted(folder.rglob("*.pdf")) if folder.is_dir() else [folder]
        if not files:
            print(f"{folder}: no PDF files here, nothing measured", file=sys.stderr)
            continue
        results = [score(path, arguments.binary) for path in files]
        report(str(folder), results)
        everything += results
    scored = [result for result in everything if result["f1"] is not None]
    for result in sorted(scored, key=lambda result: result["f1"])[: arguments.worst]:
        print(f"{result['f1']:.3f} {result['file']} ({result['words']} of {result['their_words']} words)")
        print(f"      missing {result['missing']}\n      extra   {result['extra']}")
    if arguments.refused:
        for result in everything:
            if result["code"]:
                print(f"refused: {result['error']} (pdftotext: {result['their_words']} words)")
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, ensure_ascii=False, indent=1))


def target_folder():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


if __name__ == "__main__":
    main()
