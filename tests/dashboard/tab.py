"""A page of the dashboard in a browser, and what it must never do."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, expect

PATIENCE_MS = 30_000
TOKEN = "headway-token"
expect.set_options(timeout=PATIENCE_MS)


class Tab:
    """One tab; it listens for errors, broken policies and foreign requests."""

    def __init__(
        self,
        browser: Browser,
        address: str,
        *,
        theme: Any = "light",
        token: str | None = None,
        width: int = 1280,
        is_lax: bool = False,
    ) -> None:
        self._address = address
        self._context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            bypass_csp=is_lax,
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.page: Page = self._context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        if token is not None:
            self._context.add_init_script(
                f"sessionStorage.setItem({TOKEN!r}, {token!r})"
            )

    def go(self, path: str) -> None:
        """Opens a page as a link does, and waits for its heading."""
        where = path.partition("#/")[2].partition("?")[0].split("/")[0] or "overview"
        if self.page.url.startswith(self._address):
            self.page.evaluate("hash => { location.hash = hash }", path[1:])
        else:
            self.page.goto(self._address + path)
        # A page is there when its own heading is; a form asks for a token instead.
        here = f"main[data-page='{where}'] h1, body.alone h1"
        self.page.wait_for_selector(here)

    def main(self) -> Locator:
        return self.page.locator("main")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def row(self, text: str) -> Locator:
        return self.page.locator("main tr", has_text=text).first

    def answer(self, verb: str, reason: str = "", **values: str) -> None:
        """Fills in the dialog that is open, and agrees."""
        dialog = self.page.locator("dialog[open]")
        expect(dialog).to_be_visible()
        for name, value in values.items():
            dialog.locator(f"[name={name}]").fill(value)
        if reason:
            dialog.locator("[name=reason]").fill(reason)
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(dialog).to_have_count(0)

    def says(self, text: str) -> None:
        expect(self.page.locator("#said")).to_contain_text(text)

    def shows(self, text: str) -> None:
        expect(self.main()).to_contain_text(text)

    def hides(self, name: str) -> None:
        expect(self.button(name)).to_have_count(0)

    def barriers(self) -> list[str]:
        """What axe says would keep somebody out; it needs a tab with a lax policy."""
        violations = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in violations
        ]

    def close(self) -> list[str]:
        """What was wrong with it."""
        if self.page.evaluate("window.hacked !== undefined"):
            self.complaints.append("a script ran that was no script of ours")
        self._context.close()
        return self.complaints

    def _heard(self, message: Any) -> None:
        # The browser itself tells of every answer above 399; pages show those.
        is_answer = "Failed to load resource" in message.text
        if message.type in ("error", "warning") and not is_answer:
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.complaints.append(f"it asked {request.url}")
