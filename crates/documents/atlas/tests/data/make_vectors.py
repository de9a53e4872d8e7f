"""Makes projections.json: where PROJ puts places on a unit sphere, and back, for checking ours.

usage: python make_vectors.py        (needs pyproj; made with pyproj 3.7.2)

For each projection: its PROJ words, and rows [lon, lat, x, y, back lon, back lat] in degrees and radii for places all over
the sphere, with the poles and the antimeridian among them. Rows end early where PROJ knows no way back.
"""
import json
import math
import random
from pathlib import Path

import pyproj
from pyproj import Transformer

PROJECTIONS = {
    "equirectangular": "+proj=eqc",
    "mercator": "+proj=merc",
    "transverse-mercator": "+proj=tmerc",
    "miller": "+proj=mill",
    "gall-stereographic": "+proj=gall",
    "gall-peters": "+proj=cea +lat_ts=45",
    "equal-earth": "+proj=eqearth",
    "natural-earth": "+proj=natearth",
    "natural-earth2": "+proj=natearth2",
    "robinson": "+proj=robin",
    "winkel-tripel": "+proj=wintri",
    "aitoff": "+proj=aitoff",
    "hammer": "+proj=hammer",
    "mollweide": "+proj=moll",
    "sinusoidal": "+proj=sinu",
    "eckert-4": "+proj=eck4",
    "kavrayskiy-7": "+proj=kav7",
    "van-der-grinten": "+proj=vandg",
    "albers": "+proj=aea +lat_1=29.5 +lat_2=45.5",
    "lambert-conformal": "+proj=lcc +lat_1=33 +lat_2=45",
    "equidistant-conic": "+proj=eqdc +lat_1=-20 +lat_2=-50",
    "azimuthal-equal-area": "+proj=laea",
    "azimuthal-equidistant": "+proj=aeqd",
    "orthographic": "+proj=ortho",
    "stereographic": "+proj=stere",
    "gnomonic": "+proj=gnom",
}
# The same with the globe turned: centre longitude, centre latitude.
TURNED = {
    "orthographic": ("+proj=ortho +lat_0=40 +lon_0=-20", [-20, 40]),
    "azimuthal-equal-area": ("+proj=laea +lat_0=-33.5 +lon_0=151", [151, -33.5]),
    "azimuthal-equidistant": ("+proj=aeqd +lat_0=90 +lon_0=10", [10, 90]),
    "stereographic": ("+proj=stere +lat_0=-90 +lon_0=-60", [-60, -90]),
    "gnomonic": ("+proj=gnom +lat_0=12 +lon_0=100", [100, 12]),
    "equal-earth": ("+proj=ob_tran +o_proj=eqearth +o_lat_p=55 +o_lon_p=0 +lon_0=70", [70, 35]),
    "mollweide": ("+proj=ob_tran +o_proj=moll +o_lat_p=0 +o_lon_p=0 +lon_0=-100", [-100, 90]),
    "mercator": ("+proj=ob_tran +o_proj=merc +o_lat_p=40 +o_lon_p=0 +lon_0=20", [20, 50]),
    "equirectangular": ("+proj=ob_tran +o_proj=eqc +o_lat_p=150 +o_lon_p=0 +lon_0=0", [0, -60]),
}

chance = random.Random(20261115)
PLACES = [(lon, lat) for lon in (-180, -120, -45, 0, 60, 90, 180) for lat in (-90, -89.9, -45, 0, 30, 89.9, 90)]
PLACES += [(round(chance.uniform(-180, 180), 6), round(math.degrees(math.asin(chance.uniform(-1, 1))), 6)) for _ in range(101)]


def vectors(words):
    steps = "+step +proj=unitconvert +xy_in=deg +xy_out=rad"
    transformer = Transformer.from_pipeline(f"+proj=pipeline {steps} +step {words} +R=1")
    rows = []
    for lon, lat in PLACES:
        try:
            x, y = transformer.transform(lon, lat, errcheck=True)
        except pyproj.exceptions.ProjError:
            continue
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        rows.append([lon, lat, x, y])
        try:
            back = transformer.transform(x, y, errcheck=True, direction="INVERSE")
        except pyproj.exceptions.ProjError:
            continue
        if all(map(math.isfinite, back)):
            rows[-1] += back
    return {"proj": words, "rows": rows}


out = [{"name": name, "center": [0, 0], **vectors(words)} for name, words in PROJECTIONS.items()]
out += [{"name": name, "center": center, **vectors(words)} for name, (words, center) in TURNED.items()]
lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in out)
Path(__file__).with_name("projections.json").write_text(f"[\n{lines}\n]\n")
for entry in out:
    print(entry["name"], entry["center"], len(entry["rows"]))
