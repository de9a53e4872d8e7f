#!/usr/bin/env python3
"""Measures what one document costs the html service on PostgreSQL and S3. See README.md."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
import uuid

REQUEST = re.compile(rb"(?:^|\r\n\r\n|\n)(GET|PUT|POST|HEAD|DELETE) /\S* HTTP/1\.1\r\n")
TICK = os.sysconf("SC_CLK_TCK")


class Counter:
    """Passes bytes on to an S3 server, and counts requests and bytes."""

    def __init__(self, upstream):
        host, port = upstream.removeprefix("http://").split(":")
        self.upstream, self.requests, self.bytes = (host, int(port)), collections.Counter(), collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self):
        return "http://127.0.0.1:%d" % self.listener.getsockname()[1]

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.upstream)
            for source, sink, way in ((client, server, "sent"), (server, client, "received")):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pump, args=(source, sink, way), daemon=True).start()

    def pump(self, source, sink, way):
        try:
            while data := source.recv(1 << 16):
                self.bytes[way] += len(data)
                if way == "sent":
                    self.requests.update(method.decode() for method in REQUEST.findall(data))
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def processor_seconds(root, name):
    """Processor time of a process and of all its descendants, the ended ones included, as far as they are named so."""
    parents, times = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            head, tail = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        fields, pid = tail.split(), int(head.split(" (", 1)[0])
        parents[pid] = int(fields[1])
        if name in head.split(" (", 1)[1]:
            times[pid] = sum(int(field) for field in fields[11:15]) / TICK

    def is_below(pid):
        while pid not in (0, root):
            pid = parents.get(pid, 0)
        return pid == root

    return sum(seconds for pid, seconds in times.items() if is_below(pid))


def call(url, key, path, body=None):
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as answer:
        return json.load(answer)


def sql(database, statement):
    return subprocess.run(["psql", "-qAtc", statement, database], check=True, text=True, capture_output=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the ode to measure")
    parser.add_argument("documents", type=pathlib.Path, help="a directory with PDFs")
    parser.add_argument("--repeat", type=int, default=3, help="how often each document is converted")
    args = parser.parse_args()
    name = "cost_" + uuid.uuid4().hex
    postgres, s3_root = os.environ["ODE_TEST_POSTGRES_URL"], pathlib.Path(os.environ["ODE_TEST_S3_ROOT"])
    sql(postgres, "CREATE DATABASE " + name)
    database = postgres.rsplit("/", 1)[0] + "/" + name
    buckets = {part: "%s-%s" % (part, name[5:]) for part in ("in", "out", "own")}
    for bucket in buckets.values():
        (s3_root / bucket).mkdir()
    documents = sorted(args.documents.glob("*.pdf"))
    for document in documents:
        shutil.copy(document, s3_root / buckets["in"] / document.name)
    counter = Counter(os.environ["ODE_TEST_S3_URL"])
    with tempfile.TemporaryDirectory() as data:
        common = ["--data", data, "--database", database]
        subprocess.run([args.program, "migrate", "up", *common], check=True, capture_output=True)
        keys = subprocess.run([args.program, "keys", "create", "--organisation", "cost", "--json", *common],
                              check=True, text=True, capture_output=True)
        key = json.loads(keys.stdout)["key"]
        serve = [args.program, "serve", "--listen", "127.0.0.1:0", "--gateway", "off", "--log", "warn", *common,
                 "--polls-a-minute", "1000000", "--s3-endpoint", counter.url(),
                 "--input-root", "s3://" + buckets["in"], "--output-root", "s3://" + buckets["out"],
                 "--storage", "s3://" + buckets["own"]]
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[-1]
            print(json.dumps(measure(args, documents, url, key, database, buckets, counter, server.pid), indent=1))
        finally:
            server.terminate()
            server.wait()


def measure(args, documents, url, key, database, buckets, counter, pid):
    postmaster = int(sql(database, "SELECT pg_read_file('postmaster.pid')").split()[0])
    jobs = [{"external_id": f"{round}-{document.name}", "input_s3_path": f"s3://{buckets['in']}/{document.name}",
             "output_s3_prefix": f"s3://{buckets['out']}/{round}/{document.stem}"}
            for round in range(args.repeat) for document in documents]
    counter.requests.clear()
    counter.bytes.clear()
    log = sql(database, "SELECT pg_current_wal_lsn()")
    before = processor_seconds(pid, "ode"), processor_seconds(postmaster, "postgres")
    began = time.monotonic()
    call(url, key, "/v1/jobs/batch", {"jobs": jobs})
    while sql(database, "SELECT count(*) FROM job_live") != "0":
        time.sleep(0.5)
    took = time.monotonic() - began
    after = processor_seconds(pid, "ode"), processor_seconds(postmaster, "postgres")
    done, files, size, cpu, peak = sql(database, """SELECT count(*), coalesce(sum((result ->> 'files')::int), 0),
        coalesce(sum((result -> 'telemetry' ->> 'bytes_out')::bigint), 0),
        coalesce(sum((result -> 'telemetry' ->> 'cpu_ms')::bigint), 0),
        coalesce(max((result -> 'telemetry' ->> 'peak_memory_bytes')::bigint), 0)
        FROM jobs WHERE state = 'completed'""").split("|")
    count = len(jobs)
    written = int(sql(database, f"SELECT pg_current_wal_lsn() - '{log}'::pg_lsn"))
    return {
        "documents": count, "completed": int(done), "documents_per_s": round(count / took, 1),
        "files_each": round(int(files) / count, 2), "result_kb_each": round(int(size) / count / 1000, 1),
        "conversion_cpu_ms_each": round(int(cpu) / count, 1),
        "ode_cpu_ms_each": round((after[0] - before[0]) * 1000 / count, 1),
        "postgres_cpu_ms_each": round((after[1] - before[1]) * 1000 / count, 2),
        "postgres_log_kb_each": round(written / count / 1000, 2),
        "s3_requests_each": {method: round(number / count, 2) for method, number in sorted(counter.requests.items())},
        "s3_kb_sent_each": round(counter.bytes["sent"] / count / 1000, 1),
        "s3_kb_received_each": round(counter.bytes["received"] / count / 1000, 1),
        "peak_memory_mb_max": round(int(peak) / 1e6, 1),
    }


if __name__ == "__main__":
    main()
