"""A page of HTML with its links, texts and faults."""

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "source", "wbr"}


class Document(HTMLParser):
    """Links, loaded files, ids, text and drawings of a page. `faults` are end tags without a start,
    or the reverse.
    """

    def __init__(self, file: Path):
        super().__init__()
        self.links, self.loaded, self.ids, self.open, self.faults, self.text = (
            [],
            [],
            [],
            [],
            [],
            [],
        )
        self.source = file.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        self.faults += self.open
        self.words = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif values.get("src") or (
            tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload")
        ):
            self.loaded.append(values.get("src") or values["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.faults.append(f"/{tag} in {self.open[-1:]} at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
