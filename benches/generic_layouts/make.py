#!/usr/bin/env python3
"""Draws invoices in layouts and languages that no mapping was written for, each beside its truth.

    make.py OUT [--seed N] [--each N]

Every layout is drawn in every language of `words.py`; names, numbers, dates, wordings and number styles are drawn by the
seed. The truth has the shape that `score.py` of the invoice corpus reads.
"""

import argparse
import datetime
import json
import pathlib
import random
from decimal import ROUND_HALF_UP, Decimal

from paper import Paper
from words import ITEMS, MONTHS, PLACES, WORDS

CENT = Decimal("0.01")


def cents(amount):
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


class Invoice:
    """One made-up invoice and how its country prints things."""

    def __init__(self, language, rng):
        self.language, self.rng = language, rng
        self.lists = WORDS[language]
        self.words = {key: rng.choice(value) if isinstance(value, list) else value for key, value in self.lists.items()}
        country = self.words["country"]
        names, streets, towns = PLACES[country]
        sellers = rng.sample(names, 2)
        self.seller = [sellers[0], rng.choice(streets), rng.choice(towns)]
        self.buyer = [sellers[1], rng.choice(streets), rng.choice(towns)]
        self.point = self.words.get("point", False)
        self.whole = self.words["currency"] in ("IDR", "HUF")
        self.space = not self.point and language in ("fr", "pl", "cs", "sv", "no", "fi", "sk") and rng.random() < 0.7
        self.number = rng.choice(["INV-2026-0{:03d}", "{:05d}", "2026/{:04d}", "F26-{:04d}", "R{:06d}", "{:03d}/04/2026"]).format(rng.randint(100, 999))
        self.date = datetime.date(2026, rng.randint(1, 6), rng.randint(1, 28))
        self.due = self.date + datetime.timedelta(days=rng.choice([10, 14, 30]))
        self.delivery = self.date - datetime.timedelta(days=rng.randint(1, 9))
        self.form = rng.choice(self.lists["dates"])
        self.order = rng.choice(["PO-{}", "{}", "45{}", "B-{}"]).format(rng.randint(10000, 99999))
        self.customer = str(rng.randint(10000, 99999))
        self.iban = iban({"EL": "GR", "US": "", "ID": ""}.get(country, country), rng)
        self.vat = [tax_number(country, rng), tax_number(country, rng)]
        self.rate = Decimal(self.words["rate"])
        self.lines = self.make_lines()
        self.net = sum(line["total"] for line in self.lines)
        self.tax = cents(self.net * self.rate / 100)
        if self.whole:
            self.tax = self.tax.quantize(Decimal(1), rounding=ROUND_HALF_UP)
        self.gross = self.net + self.tax
        self.mark = rng.choice(marks(self.words["currency"]))
        self.side = "before" if self.mark in ("$", "£", "Rp") else rng.choice(["behind", "behind", "none"])
        self.shown = {}

    def make_lines(self):
        lines = []
        for at, name in enumerate(self.rng.sample(ITEMS, self.rng.randint(2, 6)), 1):
            price = Decimal(self.rng.randint(300, 25000)) / 100
            if self.whole:
                price = Decimal(self.rng.randint(10, 900) * 1000)
            quantity = Decimal(self.rng.randint(1, 12))
            code = f"{self.rng.choice('ABCX')}{self.rng.randint(100, 999)}"
            lines.append(dict(id=str(at), item_id=code, name=name, quantity=quantity, unit_price=price, total=price * quantity))
        return lines

    def amount(self, value):
        text = f"{value:,.0f}" if self.whole else f"{value:,.2f}"
        if not self.point:
            text = text.translate(str.maketrans(",.", " ," if self.space else ".,"))
        return text

    def money(self, value):
        if self.side == "none":
            return self.amount(value)
        return f"{self.mark}{' ' if self.mark == 'Rp' else ''}{self.amount(value)}" if self.side == "before" else f"{self.amount(value)} {self.mark}"

    def day(self, date):
        months = MONTHS.get({"us": "en"}.get(self.language, self.language), "").split()
        form = self.form
        if months:
            form = form.replace("%B", months[date.month - 1]).replace("%b", months[date.month - 1][:3])
        return date.strftime(form)

    def label(self, key):
        return self.words[key].replace("{rate}", str(self.rate).replace(".", "." if self.point else ","))

    def show(self, field, value):
        """Notes that a value is on the page, and gives it back."""
        self.shown[field] = str(value)
        return value

    def truth(self, layout):
        values = {
            "invoice_number": self.number, "issue_date": self.date, "due_date": self.due, "delivery_date": self.delivery,
            "currency": self.words["currency"], "seller_name": self.seller[0], "buyer_name": self.buyer[0],
            "seller_vat_id": self.vat[0], "buyer_vat_id": self.vat[1], "order_reference": self.order, "iban": self.iban,
            "net_total": self.net, "tax_total": self.tax, "gross_total": self.gross, "payable": self.gross,
        }
        entry = lambda value: dict(value=str(value), visible=True, printed=str(value), at=[])
        fields = {name: entry(values[name]) for name in self.shown}
        rows = [{name: entry(value) for name, value in line.items() if name in self.columns} for line in self.lines]
        return dict(layout=f"{layout}-{self.language}", source="made", pages=1, has_text=True, fields=fields, vat=[], lines=rows)


def marks(currency):
    return {"EUR": ["€", "EUR"], "GBP": ["£"], "USD": ["$"], "PLN": ["zł", "PLN"], "CZK": ["Kč", "CZK"], "IDR": ["Rp"], "HUF": ["Ft", "HUF"],
            "DKK": ["kr.", "DKK"], "SEK": ["kr", "SEK"], "NOK": ["kr", "NOK"], "RON": ["lei", "RON"], "TRY": ["₺", "TL"]}[currency]


def iban(country, rng):
    if not country:
        return None
    lengths = dict(GB=22, DE=22, FR=27, ES=24, IT=27, NL=18, PT=25, PL=28, CZ=24, DK=18, SE=24, NO=15, FI=18, RO=24, HU=28, HR=21, SK=24, SI=19, GR=27, TR=26)
    body = "".join(rng.choice("0123456789") for _ in range(lengths[country] - 4))
    if country in ("GB", "NL", "RO"):
        body = "BANK" + body[4:]
    digits = "".join(str(int(c, 36)) for c in body + country + "00")
    return f"{country}{98 - int(digits) % 97:02d}{body}"


def tax_number(country, rng):
    digits = lambda count: "".join(rng.choice("0123456789") for _ in range(count))
    forms = {
        "GB": lambda: f"GB{digits(9)}", "DE": lambda: f"DE{digits(9)}", "FR": lambda: f"FR{digits(11)}", "ES": lambda: f"B{digits(8)}",
        "IT": lambda: rng.choice(["IT", ""]) + digits(11), "NL": lambda: f"NL{digits(9)}B01", "PT": lambda: rng.choice(["PT5", "5"]) + digits(8),
        "PL": lambda: rng.choice([f"PL{digits(10)}", digits(10), f"{digits(3)}-{digits(3)}-{digits(2)}-{digits(2)}"]), "CZ": lambda: f"CZ{digits(8)}",
        "DK": lambda: rng.choice([f"DK{digits(8)}", digits(8)]), "SE": lambda: f"SE{digits(10)}01", "NO": lambda: rng.choice([f"NO{digits(9)}MVA", digits(9)]),
        "FI": lambda: f"FI{digits(8)}", "RO": lambda: f"RO{digits(8)}", "HU": lambda: f"{digits(8)}-2-{digits(2)}", "HR": lambda: rng.choice(["HR", ""]) + digits(11),
        "SK": lambda: f"SK{digits(10)}", "SI": lambda: f"SI{digits(8)}", "EL": lambda: rng.choice(["EL", ""]) + digits(9), "TR": lambda: digits(10), "US": lambda: f"{digits(2)}-{digits(7)}",
        "ID": lambda: f"0{digits(1)}.{digits(3)}.{digits(3)}.{digits(1)}-{digits(3)}.000",
    }
    return forms[country]()


# ---------------------------------------------------------------------------------------------------------- parts

def meta(invoice, keys=("number", "date", "due", "order")):
    """Labels and values of the document itself, in this order."""
    values = dict(number=("invoice_number", invoice.number), date=("issue_date", invoice.day(invoice.date)), due=("due_date", invoice.day(invoice.due)),
                  delivery=("delivery_date", invoice.day(invoice.delivery)), order=("order_reference", invoice.order), customer=(None, invoice.customer))
    pairs = []
    for key in keys:
        field, value = values[key]
        if field:
            invoice.show(field, value)
        pairs.append((invoice.label(key), value))
    return pairs


def table(paper, invoice, top, columns, ruled=True, boxed=False, gap=16.0):
    """Draws the lines; `columns` is (key, x, side). Gives the height under the last one."""
    heads = dict(pos="pos", code="code", name="name", qty="qty", price="price", tax="tax", total="total", unit="unit")
    invoice.columns = {dict(pos="id", code="item_id", name="name", qty="quantity", price="unit_price", total="total").get(key) for key, _, _ in columns}
    invoice.show("currency", "") if invoice.side != "none" else None
    for key, x, side in columns:
        paper.text(x, top, invoice.words[heads[key]], 8.5, True, side)
    if ruled:
        paper.line(40, top + 5, 555, top + 5)
    y = top + gap + 3
    for line in invoice.lines:
        cells = dict(pos=line["id"], code=line["item_id"], name=line["name"], qty=str(line["quantity"]), unit="pcs", price=invoice.amount(line["unit_price"]),
                     tax=f"{invoice.words['rate'].replace('.', '.' if invoice.point else ',')} %", total=invoice.money(line["total"]))
        for key, x, side in columns:
            paper.text(x, y, cells[key], 9, False, side)
        y += gap
        if boxed:
            paper.line(40, y - gap + 5, 555, y - gap + 5)
    if ruled:
        paper.line(40, y - gap + 6, 555, y - gap + 6)
    return y + 6


def totals(paper, invoice, y, x, right, side="left", with_payable=False, gap=15.0):
    rows = [(invoice.label("net"), invoice.show("net_total", invoice.net)), (invoice.label("vat_total"), invoice.show("tax_total", invoice.tax)),
            (invoice.label("gross"), invoice.show("gross_total", invoice.gross))]
    if with_payable:
        rows.append((invoice.label("payable"), invoice.show("payable", invoice.gross)))
    for at, (label, value) in enumerate(rows):
        paper.text(x, y, label, 9, at >= 2, side)
        paper.text(right, y, invoice.money(value), 9, at >= 2, "right")
        invoice.show("currency", "") if invoice.side != "none" else None
        y += gap
    return y


def lines_of(paper, x, y, texts, size=9.0, gap=12.0, bold_first=False, side="left"):
    for at, text in enumerate(texts):
        paper.text(x, y, text, size, bold_first and at == 0, side)
        y += gap
    return y


def bank_lines(invoice):
    lines = [f"{invoice.label('vat')}: {invoice.show('seller_vat_id', invoice.vat[0])}"]
    if invoice.iban:
        grouped = " ".join(invoice.iban[at:at + 4] for at in range(0, len(invoice.iban), 4))
        invoice.show("iban", invoice.iban)
        lines.append(f"IBAN: {grouped}")
    return lines


def parties(invoice):
    invoice.show("seller_name", "")
    invoice.show("buyer_name", "")


# -------------------------------------------------------------------------------------------------------- layouts

def letter(paper, invoice):
    """A business letter: sender in one small line over the window, key and value beside it, footer in columns."""
    parties(invoice)
    paper.text(400, 60, invoice.seller[0].split(",")[0], 15, True)
    paper.text(57, 128, " · ".join(invoice.seller), 6.5)
    lines_of(paper, 57, 145, invoice.buyer, 10, 13)
    y = 145
    for label, value in meta(invoice, ("number", "date", "customer", "due", "delivery")):
        paper.text(360, y, label + ":", 9)
        paper.text(470, y, value, 9)
        y += 13
    paper.text(57, 255, invoice.words["title"], 14, True)
    y = table(paper, invoice, 290, [("pos", 57, "left"), ("name", 85, "left"), ("qty", 330, "right"), ("price", 430, "right"), ("total", 540, "right")])
    totals(paper, invoice, y + 4, 360, 540)
    paper.text(57, 600, invoice.words["terms"], 9)
    lines_of(paper, 57, 780, [invoice.seller[0], *invoice.seller[1:]], 7, 9)
    lines_of(paper, 330, 780, [invoice.words["bank"], *bank_lines(invoice)], 7, 9)


def modern(paper, invoice):
    """Large title at the right, labels over their values in a band, totals at the right."""
    parties(invoice)
    lines_of(paper, 45, 60, invoice.seller, 10, 13, True)
    paper.text(550, 66, invoice.words["title"], 24, True, "right")
    paper.text(45, 150, invoice.label("buyer"), 8, True)
    lines_of(paper, 45, 164, invoice.buyer, 9.5, 12)
    pairs = meta(invoice)
    for at, (label, value) in enumerate(pairs):
        x = 45 + at * 130
        paper.text(x, 225, label, 8, True)
        paper.text(x, 239, value, 10)
    y = table(paper, invoice, 275, [("name", 45, "left"), ("qty", 340, "right"), ("price", 440, "right"), ("total", 550, "right")], ruled=False, gap=18)
    totals(paper, invoice, y + 8, 380, 550, with_payable=True)
    lines_of(paper, 45, 740, [invoice.words["terms"], *bank_lines(invoice)], 8, 11)


def boxes(paper, invoice):
    """Seller and buyer in boxes side by side under headings, tax numbers inside, ruled table."""
    parties(invoice)
    number, rest = meta(invoice, ("number", "date", "due", "delivery"))[0], meta(invoice, ("number", "date", "due", "delivery"))[1:]
    paper.text(297, 55, f"{invoice.words['title']}", 16, True, "middle")
    paper.text(297, 75, f"{number[0]}: {number[1]}", 10, False, "middle")
    paper.box(40, 95, 295, 185)
    paper.box(300, 95, 555, 185)
    paper.text(47, 108, invoice.label("seller"), 8, True)
    paper.text(307, 108, invoice.label("buyer"), 8, True)
    lines_of(paper, 47, 123, [*invoice.seller, f"{invoice.label('vat')}: {invoice.show('seller_vat_id', invoice.vat[0])}"], 9.5, 13)
    lines_of(paper, 307, 123, [*invoice.buyer, f"{invoice.label('vat')}: {invoice.show('buyer_vat_id', invoice.vat[1])}"], 9.5, 13)
    y = 205
    for label, value in rest:
        paper.text(47, y, label, 9)
        paper.text(180, y, value, 9, True)
        y += 13
    y = table(paper, invoice, y + 15, [("pos", 47, "left"), ("name", 75, "left"), ("qty", 300, "right"), ("unit", 320, "left"), ("price", 420, "right"), ("tax", 470, "right"), ("total", 550, "right")], boxed=True)
    totals(paper, invoice, y + 5, 445, 550, "right", with_payable=True)


def runs(paper, invoice):
    """Label and value in one run of text with a colon; everything from the left; a narrow table."""
    parties(invoice)
    y = lines_of(paper, 50, 50, invoice.seller, 11, 14, True)
    y = lines_of(paper, 50, y, bank_lines(invoice), 9, 12)
    paper.text(50, y + 20, invoice.words["title"], 18, True)
    y += 42
    for label, value in meta(invoice):
        paper.text(50, y, f"{label}: {value}", 10)
        y += 14
    paper.text(330, y - 56, invoice.label("buyer") + ":", 10, True)
    lines_of(paper, 330, y - 42, invoice.buyer, 10, 13)
    y = table(paper, invoice, y + 35, [("name", 50, "left"), ("total", 545, "right")], gap=17)
    totals(paper, invoice, y + 5, 455, 545, "right")


def grid(paper, invoice):
    """The document's data as a small table: a row of headings, a row of values, walls between."""
    parties(invoice)
    paper.text(40, 60, invoice.seller[0], 16, True)
    paper.text(40, 76, f"{invoice.seller[1]}, {invoice.seller[2]}", 8)
    paper.text(555, 60, invoice.words["title"], 16, False, "right")
    paper.text(320, 110, invoice.label("buyer"), 8)
    lines_of(paper, 320, 124, invoice.buyer, 10, 13, True)
    pairs = meta(invoice, ("number", "date", "customer", "due", "order"))
    for at, (label, value) in enumerate(pairs):
        x = 40 + at * 103
        paper.box(x, 185, x + 103, 220)
        paper.text(x + 4, 198, label, 7.5)
        paper.text(x + 4, 212, value, 9, True)
    y = table(paper, invoice, 245, [("code", 44, "left"), ("name", 110, "left"), ("qty", 320, "right"), ("price", 420, "right"), ("total", 550, "right")])
    totals(paper, invoice, y + 4, 360, 550)
    lines_of(paper, 40, 770, bank_lines(invoice), 7.5, 10)


def right_window(paper, invoice):
    """The address stands at the right, without a heading; the seller at the top left; title with the number in one line."""
    parties(invoice)
    lines_of(paper, 45, 50, invoice.seller, 9, 11, True)
    lines_of(paper, 45, 84, bank_lines(invoice)[:1], 8, 11)
    lines_of(paper, 330, 140, invoice.buyer, 10, 13)
    invoice.show("invoice_number", "")
    word = invoice.label("number")
    paper.text(45, 230, f"{word} {invoice.number}", 13, True)
    y = 250
    for label, value in meta(invoice, ("date", "due", "order")):
        paper.text(45, y, f"{label} :", 9)
        paper.text(190, y, value, 9)
        y += 13
    y = table(paper, invoice, y + 20, [("name", 45, "left"), ("qty", 320, "right"), ("price", 400, "right"), ("tax", 460, "right"), ("total", 550, "right")])
    totals(paper, invoice, y + 6, 340, 550, with_payable=True)
    lines_of(paper, 297, 800, [" - ".join([*invoice.seller, *bank_lines(invoice)[1:]])], 6.5, 9, side="middle")


def aligned(paper, invoice):
    """Labels aligned right against their values; seller at the top right; lines without rules."""
    parties(invoice)
    lines_of(paper, 555, 55, [invoice.seller[0]], 14, 16, True, "right")
    lines_of(paper, 555, 70, invoice.seller[1:], 8.5, 11, False, "right")
    paper.text(45, 60, invoice.words["title"], 20, True)
    paper.text(45, 110, invoice.label("buyer"), 9, True)
    lines_of(paper, 45, 124, [*invoice.buyer, f"{invoice.label('vat')} {invoice.show('buyer_vat_id', invoice.vat[1])}"], 9, 12)
    y = 124
    for label, value in meta(invoice):
        paper.text(450, y, label, 9, True, "right")
        paper.text(460, y, value, 9)
        y += 14
    y = table(paper, invoice, 215, [("pos", 45, "left"), ("name", 70, "left"), ("price", 360, "right"), ("qty", 430, "right"), ("total", 550, "right")], ruled=False)
    totals(paper, invoice, y + 10, 455, 550, "right", with_payable=True)
    lines_of(paper, 45, 780, bank_lines(invoice), 8, 10)


def sidebar(paper, invoice):
    """A narrow column at the left holds labels with their values under them; the table stands beside it."""
    parties(invoice)
    paper.text(180, 60, invoice.seller[0], 18, True)
    paper.text(180, 75, " | ".join(invoice.seller[1:]), 8)
    y = 120
    for label, value in meta(invoice):
        paper.text(40, y, label, 7.5)
        paper.text(40, y + 12, value, 10, True)
        y += 34
    paper.text(40, y, invoice.label("buyer"), 7.5)
    lines_of(paper, 40, y + 12, invoice.buyer, 8.5, 11)
    paper.text(180, 120, invoice.words["title"], 14, True)
    y = table(paper, invoice, 150, [("name", 180, "left"), ("qty", 380, "right"), ("price", 460, "right"), ("total", 550, "right")])
    totals(paper, invoice, y + 8, 380, 550)
    lines_of(paper, 180, 760, [invoice.words["terms"], *bank_lines(invoice)], 8, 11)


def summary(paper, invoice):
    """Totals as a table of rates under the lines, then the total in words of its own; two columns of data at the top."""
    parties(invoice)
    lines_of(paper, 45, 55, [invoice.label("seller"), *invoice.seller], 9.5, 12, True)
    lines_of(paper, 45, 104, bank_lines(invoice), 8.5, 11)
    lines_of(paper, 310, 55, [invoice.label("buyer"), *invoice.buyer, f"{invoice.label('vat')}: {invoice.show('buyer_vat_id', invoice.vat[1])}"], 9.5, 12, True)
    paper.line(40, 140, 555, 140)
    pairs = meta(invoice, ("number", "date", "delivery", "due"))
    for at, (label, value) in enumerate(pairs):
        x, y = 45 + (at % 2) * 265, 160 + (at // 2) * 15
        paper.text(x, y, label + ":", 9)
        paper.text(x + 130, y, value, 9, True)
    y = table(paper, invoice, 215, [("pos", 45, "left"), ("name", 70, "left"), ("unit", 270, "left"), ("qty", 330, "right"), ("price", 400, "right"), ("tax", 450, "right"), ("total", 550, "right")], boxed=True)
    for x, key in ((250, "tax"), (350, "net"), (450, "vat_total"), (550, "gross")):
        paper.text(x, y + 6, invoice.label(key), 8, True, "right")
    invoice.show("net_total", ""), invoice.show("tax_total", ""), invoice.show("gross_total", "")
    for x, text in ((250, f"{invoice.words['rate']} %"), (350, invoice.amount(invoice.net)), (450, invoice.amount(invoice.tax)), (550, invoice.amount(invoice.gross))):
        paper.text(x, y + 20, text, 9, False, "right")
    paper.text(45, y + 50, f"{invoice.label('payable')}: {invoice.money(invoice.show('payable', invoice.gross))}", 13, True)
    invoice.show("currency", "") if invoice.side != "none" else None


def long(paper, invoice):
    """Two pages: the lines go on, the totals stand on the second page with their amounts in a column of their own."""
    invoice.lines = invoice.lines * 4
    invoice.lines = [dict(line, id=str(at)) for at, line in enumerate(invoice.lines, 1)][:22]
    invoice.net = sum(line["total"] for line in invoice.lines)
    invoice.tax = cents(invoice.net * invoice.rate / 100).quantize(Decimal(1) if invoice.whole else CENT, rounding=ROUND_HALF_UP)
    invoice.gross = invoice.net + invoice.tax
    parties(invoice)
    paper.text(45, 50, invoice.seller[0], 13, True)
    lines_of(paper, 45, 64, invoice.seller[1:], 8.5, 11)
    paper.text(45, 130, invoice.label("buyer"), 9, True)
    lines_of(paper, 45, 143, invoice.buyer, 9.5, 12)
    y = 130
    for label, value in meta(invoice):
        paper.text(350, y, label, 9)
        paper.text(555, y, value, 9, True, "right")
        y += 13
    columns = [("pos", 45, "left"), ("name", 75, "left"), ("qty", 330, "right"), ("price", 430, "right"), ("total", 550, "right")]
    whole = invoice.lines
    invoice.lines = whole[:14]
    table(paper, invoice, 220, columns)
    paper.new_page()
    paper.text(45, 40, invoice.seller[0], 8)
    invoice.lines = whole[14:]
    y = table(paper, invoice, 70, columns) if invoice.lines else 90
    invoice.lines = whole
    totals(paper, invoice, y + 8, 350, 550, with_payable=True)
    lines_of(paper, 45, 790, bank_lines(invoice), 8, 10)


LAYOUTS = [letter, modern, boxes, runs, grid, right_window, aligned, sidebar, summary, long]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=1, help="documents for each layout and language")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for layout in LAYOUTS:
        for language in WORDS:
            for count in range(options.each):
                rng = random.Random(f"{options.seed}/{layout.__name__}/{language}/{count}")
                invoice, paper = Invoice(language, rng), Paper()
                layout(paper, invoice)
                name = f"{layout.__name__}-{language}-{count + 1}"
                (options.out / f"{name}.pdf").write_bytes(paper.pdf())
                text = json.dumps(invoice.truth(layout.__name__), ensure_ascii=False, indent=1)
                (options.out / f"{name}.truth.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
