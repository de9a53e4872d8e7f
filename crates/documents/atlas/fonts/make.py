"""Makes the fonts in this folder from the originals: only the letters that maps need, without hints, and with the
kerning of GPOS written into the old `kern` table, which is all that setting a line of Latin, Greek or Cyrillic takes.

usage: python make.py FOLDER_WITH_THE_ORIGINALS     (needs fonttools; ORIGIN.md says where the originals come from)
"""
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.tables._k_e_r_n import KernTable_format_0

FACES = {
    "sans-regular.otf": "Inter-Regular.otf",
    "sans-semibold.otf": "Inter-SemiBold.otf",
    "serif-regular.otf": "EBGaramond12-Regular.otf",
    "serif-italic.otf": "EBGaramond12-Italic.otf",
}
# Latin with all its accents, Greek, Cyrillic, punctuation, currencies, and the signs of coordinates.
LETTERS = [(0x20, 0x7E), (0xA0, 0x24F), (0x259, 0x259), (0x2BB, 0x2BC), (0x2C6, 0x2DD), (0x300, 0x328), (0x370, 0x3FF),
           (0x400, 0x4FF), (0x1E00, 0x1EFF), (0x2010, 0x2027), (0x2030, 0x203A), (0x20A0, 0x20BF), (0x2116, 0x2116),
           (0x2122, 0x2122), (0x2190, 0x2193), (0x2212, 0x2212), (0x2248, 0x2248), (0x2260, 0x2265)]
KERNED = [(0x20, 0x7E), (0xC0, 0x17F), (0x386, 0x3CE), (0x400, 0x45F), (0x2013, 0x201E)]
PAIRS_MAX = 10_000  # The old table counts its bytes in 16 bits.


def code_points(ranges):
    return {c for first, last in ranges for c in range(first, last + 1)}


def pair_tables(font):
    if "GPOS" not in font:
        return
    gpos = font["GPOS"].table
    indices = {i for f in gpos.FeatureList.FeatureRecord if f.FeatureTag == "kern" for i in f.Feature.LookupListIndex}
    for index in sorted(indices):
        for table in gpos.LookupList.Lookup[index].SubTable:
            table = getattr(table, "ExtSubTable", table)
            if table.LookupType == 2:
                yield table


def kerning(font, glyphs):
    """Pairs of glyphs and by how much they move together; the first table that knows a pair decides, as in GPOS."""
    pairs, decided = {}, set()
    for table in pair_tables(font):
        firsts = [g for g in table.Coverage.glyphs if g in glyphs]
        if table.Format == 1:
            for first, records in zip(table.Coverage.glyphs, table.PairSet):
                for record in records.PairValueRecord if first in glyphs else []:
                    if record.SecondGlyph in glyphs and (first, record.SecondGlyph) not in decided:
                        decided.add((first, record.SecondGlyph))
                        pairs[first, record.SecondGlyph] = getattr(record.Value1, "XAdvance", 0) or 0
            continue
        for first in firsts:
            row = table.Class1Record[table.ClassDef1.classDefs.get(first, 0)].Class2Record
            for second in glyphs:
                if (first, second) not in decided:
                    decided.add((first, second))
                    value = row[table.ClassDef2.classDefs.get(second, 0)].Value1
                    pairs[first, second] = getattr(value, "XAdvance", 0) or 0
    return pairs


def make(original, out):
    font = TTFont(original)
    cmap = font.getBestCmap()
    glyphs = {cmap[c] for c in code_points(KERNED) if c in cmap}
    pairs = kerning(font, glyphs)
    strongest = sorted(pairs.items(), key=lambda pair: (-abs(pair[1]), pair[0]))[:PAIRS_MAX]
    options = subset.Options(hinting=False, layout_features=[], name_IDs=["*"], notdef_outline=True, glyph_names=True)
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "DSIG", "BASE", "JSTF", "kern"]
    options.desubroutinize = True
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=code_points(LETTERS))
    subsetter.subset(font)
    kern = newTable("kern")
    kern.version = 0
    table = KernTable_format_0()
    table.version = 0
    table.coverage = 1
    table.apple = False
    table.tupleIndex = None
    table.kernTable = {pair: value for pair, value in strongest if value}
    kern.kernTables = [table]
    font["kern"] = kern
    font.save(out)
    print(out.name, out.stat().st_size, "bytes,", len(table.kernTable), "pairs,", len(font.getGlyphOrder()), "glyphs")


for name, original in FACES.items():
    make(next(Path(sys.argv[1]).rglob(original)), Path(__file__).parent / name)
