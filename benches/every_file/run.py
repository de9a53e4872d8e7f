#!/usr/bin/env python3
"""Converts every PDF of some folders, broken and hostile ones too, and says what did not go as promised.

See README.md.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY.parent / "shared" / "corpus"
FORMS = ("xml", "json", "text")
CPU_SECONDS_MAX = 20
MEMORY_MB_MAX = 512
# Longer than any conversion may take: past it, something hangs.
WALL_SECONDS_MAX = 240
# A refusal is a sentence that ends in a code.
REFUSAL = re.compile(r"\A.*: [A-Z][^\n]{20,} \(([A-Z_]+)\)\Z")
# The reader was ended from outside or fell over: the child held, but a person is told nothing about the document.
FALLEN = "made the reader fail"


def run(command):
    """Runs a command; gives its exit code, errors, CPU seconds and peak memory in MB, its children's included."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        errors = err.read().decode("utf-8", "replace")
        return process.returncode, errors, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def convert(ode, path, form):
    code, errors, cpu, memory = run([ode, "convert", str(path), "--to", form])
    lines = [line for line in errors.splitlines() if line.strip()]
    refusal = next((match.group(1) for match in map(REFUSAL.match, lines[-1:]) if match), None)
    faults = []
    if code not in (0, 1):
        faults.append(f"ended with {code}")
    if code == 1 and not refusal:
        faults.append("refused without a sentence and a code")
    if "panicked" in errors or FALLEN in errors:
        faults.append("the reader failed")
    if cpu > CPU_SECONDS_MAX:
        faults.append(f"{cpu:.1f} CPU s")
    if memory > MEMORY_MB_MAX:
        faults.append(f"{memory:.0f} MB")
    said = lines[-1] if lines else ""
    return {"file": path.name, "to": form, "code": refusal if code else "converted", "cpu": cpu, "memory_mb": memory,
            "faults": faults, "said": said}


def report(results):
    for form in FORMS:
        of_form = [result for result in results if result["to"] == form]
        codes = collections.Counter(result["code"] for result in of_form)
        print(f"{form}: {len(of_form)} files, " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))
    print(
        f"slowest {max(r['cpu'] for r in results):.2f} CPU s, largest {max(r['memory_mb'] for r in results):.0f} MB"
    )
    faulty = [result for result in results if result["faults"]]
    for result in faulty:
        print(f"! {result['file']} --to {result['to']}: {', '.join(result['faults'])}: {result['said']}")
    return len(faulty)


def post(address, path):
    """Sends a document to a gateway; gives the status, or what became of the connection."""
    mark = "----every-file"
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'.encode()
    body = head + path.read_bytes() + f"\r\n--{mark}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    request = urllib.request.Request(f"{address}/process", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=WALL_SECONDS_MAX) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal).get("code", "no code")
    except OSError as error:
        return None, str(error)


def through_gateway(ode, files):
    """All files through one gateway, which must live on; gives what went wrong."""
    command = [ode, "gateway", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gateway:
        try:
            address = re.search(r"http://\S+", gateway.stdout.readline()).group()
            answers = collections.Counter()
            wrong = []
            for path in files:
                status, code = post(address, path)
                answers[f"{status} {code}".strip()] += 1
                if status not in (200, 413, 415, 422):
                    wrong.append(f"{path.name}: {status} {code}")
            with urllib.request.urlopen(f"{address}/healthz", timeout=10) as health:
                if health.status != 200:
                    wrong.append(f"healthz answers {health.status}")
            print("gateway: " + ", ".join(f"{answer} {count}" for answer, count in answers.most_common()))
            return wrong
        finally:
            gateway.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=pathlib.Path, help="folders with PDFs (default: the shared corpus)")
    parser.add_argument("--ode", default=str(target_folder() / "release" / "ode"), help="the program")
    parser.add_argument("--jobs", type=int, default=1, help="conversions at a time")
    parser.add_argument("--json", type=pathlib.Path, help="write all results here")
    arguments = parser.parse_args()
    files = [file for folder in arguments.folders or [CORPUS / "pdf"] for file in sorted(folder.rglob("*.pdf"))]
    if not files:
        sys.exit("There are no PDFs there; nothing was converted.")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = [(file, form) for file in files for form in FORMS]
        results = list(pool.map(lambda task: convert(arguments.ode, *task), tasks))
    faults = report(results)
    wrong = through_gateway(arguments.ode, files)
    for line in wrong:
        print(f"! gateway: {line}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, ensure_ascii=False, indent=1))
    sys.exit(1 if faults or wrong else 0)


def target_folder():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


if __name__ == "__main__":
    main()
