"""Links of a site that was built: every file and every anchor that a page names is there.

Takes the folder of the site. Links to other hosts are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and the addresses that it names with their lines."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append((self.getpos()[0], value))


def main(site):
    # Relative to the root of a host, of which a folder has none.
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    broken, count = [], 0
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            where = f"{path.relative_to(site)}:{line}: {link}"
            if not target.is_relative_to(site) or not target.is_file():
                broken.append(f"{where}: no such file on the site")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                broken.append(f"{where}: no such anchor")
    for line in broken:
        print(f"FAILED {line}")
    print(f"{count} links on {len(pages)} pages")
    # A site without links was not read.
    return 1 if broken or count < 1000 else 0


sys.exit(main(Path(sys.argv[1]).resolve()))
