"""A sheet of paper that becomes a PDF: text in Helvetica at places, and lines. Nothing else is needed here."""

import unicodedata

WIDTHS = [278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, *[556] * 10, 278, 278, 584, 584,
          584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611,
          722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
          222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584]


def width_of(letter):
    base = unicodedata.normalize("NFD", letter)[0]
    return WIDTHS[ord(base) - 32] if 32 <= ord(base) < 127 else 556


class Paper:
    """Places are in points from the top-left corner; `y` is the base line."""

    WIDTH, HEIGHT = 595, 842

    def __init__(self):
        self.pages, self.codes = [[]], {}

    def new_page(self):
        self.pages.append([])

    def width(self, text, size):
        return sum(width_of(letter) for letter in text) * size / 1000

    def text(self, x, y, text, size=9.0, bold=False, side="left"):
        shift = {"left": 0, "right": self.width(text, size), "middle": self.width(text, size) / 2}[side]
        data = bytes(self.code(letter) for letter in text).hex()
        font = "B" if bold else "R"
        self.pages[-1].append(f"BT /{font} {size} Tf {x - shift:.2f} {self.HEIGHT - y:.2f} Td <{data}> Tj ET")

    def line(self, x0, y0, x1, y1):
        self.pages[-1].append(f"{x0:.1f} {self.HEIGHT - y0:.1f} m {x1:.1f} {self.HEIGHT - y1:.1f} l 0.5 w S")

    def box(self, x0, y0, x1, y1):
        for a in ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1)):
            self.line(*a)

    def code(self, letter):
        if 32 <= ord(letter) < 127:
            return ord(letter)
        return self.codes.setdefault(letter, 128 + len(self.codes))

    def pdf(self):
        objects = []

        def add(body):
            objects.append(body)
            return len(objects)

        letters = {code: letter for letter, code in self.codes.items()} | {code: chr(code) for code in range(32, 127)}
        rows = "\n".join(f"<{code:02x}> <{letter.encode('utf-16-be').hex()}>" for code, letter in sorted(letters.items()))
        cmap = ("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
                f"1 begincodespacerange <00> <ff> endcodespacerange\n{len(letters)} beginbfchar\n{rows}\nendbfchar "
                "endcmap CMapName currentdict /CMap defineresource pop end end")
        unicode_map = add(stream(cmap))
        widths = " ".join(str(width_of(letters.get(code, "n"))) for code in range(32, 256))
        fonts = [add(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /FirstChar 32 /LastChar 255 /Widths [{widths}] "
                     f"/Encoding /WinAnsiEncoding /ToUnicode {unicode_map} 0 R >>") for name in ("Helvetica", "Helvetica-Bold")]
        contents = [add(stream("\n".join(page))) for page in self.pages]
        tree = len(objects) + len(contents) + 1
        pages = [add(f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {self.WIDTH} {self.HEIGHT}] /Contents {content} 0 R "
                     f"/Resources << /Font << /R {fonts[0]} 0 R /B {fonts[1]} 0 R >> >> >>") for content in contents]
        kids = " ".join(f"{page} 0 R" for page in pages)
        add(f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>")
        catalog = add(f"<< /Type /Catalog /Pages {tree} 0 R >>")
        out, places = b"%PDF-1.4\n", []
        for number, body in enumerate(objects, 1):
            places.append(len(out))
            out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
        start = len(out)
        table = "".join(f"{place:010d} 00000 n \n" for place in places)
        out += (f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root {catalog} 0 R >>\n"
                f"startxref\n{start}\n%%EOF\n").encode("latin-1")
        return out


def stream(text):
    return f"<< /Length {len(text)} >>\nstream\n{text}\nendstream"
