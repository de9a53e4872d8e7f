#!/usr/bin/env python3
"""ODE's poster of the world beside d3-geo's and cartopy's. See README.md."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHARED = ROOT.parent / "shared"
WORK = HERE / ".work"
PIXELS_OFF_MAX = 1e-5  # The share of pixels that may differ by more than 96 levels.
MEMORY_MB_MAX = 40


def install():
    """The other programs, copied to where they can be built, and this script's own environment."""
    WORK.mkdir(exist_ok=True)
    for file in (SHARED / "bench" / "maps").iterdir():
        if file.is_file():
            shutil.copyfile(file, WORK / file.name)
    if not (WORK / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent"], cwd=WORK, check=True)
    python = WORK / ".venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", WORK / ".venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", WORK / "requirements.txt"], check=True)
    if Path(sys.prefix) != WORK / ".venv":
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    return python


def poster(size):
    """The specification of the picture that the others draw: lines as wide in pixels as theirs."""
    spec = {
        "schema": 1,
        "page": {"size": size},
        "style": {"widths_mm": {"coast": 0.21166667, "graticule": 0.16933333, "rim": 0.508}},
        "base": {"detail": "50m", "borders": False, "graticule_deg": 10},
        "furniture": {"credit": ""},
    }
    path = WORK / f"ode-{size}.json"
    path.write_text(json.dumps(spec))
    return path


def measure(command):
    """Processor seconds and peak megabytes of a process, from start to end."""
    process = subprocess.Popen(command, cwd=WORK, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed: {error.decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def pixels_off(ours, theirs):
    """The share of pixels whose largest difference in a channel is more than 96 levels."""
    import numpy
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    ours, theirs = (numpy.asarray(Image.open(WORK / name).convert("RGB")).astype(int) for name in (ours, theirs))
    return float((abs(ours - theirs).max(axis=2) > 96).mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ode", type=Path, default=ROOT / "target" / "release" / "ode")
    args = parser.parse_args()
    python = install()
    data = SHARED / "data" / "maps" / "land-50m.json"
    render = [args.ode.resolve(), "maps", "render", "--threads", "1"]
    programs = {
        "ode 18x24": [*render, poster("18x24"), "-o", "ode.png"],
        "ode 24x36": [*render, poster("24x36"), "-o", "ode-large.png"],
        "d3-geo": ["node", "d3_canvas.mjs", data, "d3.png"],
        "cartopy": [python, "cartopy_map.py", data, "cartopy.png"],
    }
    found = {name: [] for name in programs}
    for _ in range(args.runs):
        for name, command in programs.items():
            found[name].append(measure(command))
    cpu = {name: statistics.median(seconds for seconds, _ in runs) for name, runs in found.items()}
    memory = {name: max(megabytes for _, megabytes in runs) for name, runs in found.items()}
    for name in programs:
        print(f"{name:10} {cpu[name]:7.3f} s of processor time, {memory[name]:5.0f} MB, {cpu[name] / cpu['ode 18x24']:5.1f} x")
    # land-50m leaves out a few islands that the countries have; for the pictures, both draw the same coasts.
    same = SHARED / "data" / "maps" / "countries-50m.json"
    measure(["node", "d3_canvas.mjs", same, "d3-same.png"])
    off = pixels_off("ode.png", "d3-same.png")
    print(f"{off:.2e} of all pixels are more than 96 levels from d3-geo's")
    holds = {
        "a fifth of d3-geo's time": cpu["ode 18x24"] <= cpu["d3-geo"] / 5,
        "a tenth of cartopy's time": cpu["ode 18x24"] <= cpu["cartopy"] / 10,
        f"{MEMORY_MB_MAX} MB for either size": max(memory["ode 18x24"], memory["ode 24x36"]) <= MEMORY_MB_MAX,
        "the picture": off <= PIXELS_OFF_MAX,
    }
    for bar, is_held in holds.items():
        print(("holds " if is_held else "MISSED"), bar)
    sys.exit(0 if all(holds.values()) else 1)


main()
