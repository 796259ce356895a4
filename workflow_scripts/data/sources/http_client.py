"""The HTTP client of all downloads, and the settings of the network that it takes."""

import ipaddress
import os
import ssl
from collections.abc import Callable
from typing import Any

import httpx2

from workflow_scripts.common.errors import UserError

TIMEOUT = httpx2.Timeout(30, connect=10)  # seconds without a byte
PROXY_VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def make_client(
    url: str,
    headers: dict[str, str] | None = None,
    on_response: Callable[[httpx2.Response], None] | None = None,
) -> httpx2.Client:
    """Return a client for `url` with the proxies and certificates of the environment.

    It follows redirects. `on_response` is called with each response, that of a redirect too, before
    it is followed. Raises UserError for what is no URL, and with the name of a variable that no
    client can use.
    """
    options: dict[str, Any] = {"timeout": TIMEOUT, "follow_redirects": True, "max_redirects": 5}
    if headers:
        options["headers"] = headers
    if on_response:
        options["event_hooks"] = {"response": [on_response]}
    check_network_settings()
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        raise UserError(f"{url}: {error}") from error
    if is_in_unproxied_network(host):
        address = f"[{host}]" if ":" in host else host
        options["mounts"] = {f"all://{address}": None}
    return httpx2.Client(**options)


def check_network_settings() -> None:
    """Raise UserError with the name of a variable of the environment that no client can use."""
    try:
        httpx2.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        name = next((name for name in CERTIFICATE_VARIABLES if os.environ.get(name)), None)
        if name is None:
            raise UserError(f"the certificates of this system cannot be read ({error})") from error
        raise UserError(
            f"{name}={os.environ[name]} cannot be read as certificates ({error}); "
            f"correct or unset {name}"
        ) from error
    for name in list_set_variables(PROXY_VARIABLES):
        url = os.environ[name]
        if "://" not in url:
            url = f"http://{url}"
        try:
            httpx2.Proxy(url)
        except (ValueError, httpx2.InvalidURL) as error:
            # The value may hold a password.
            raise UserError(
                f"{name} is not the URL of a proxy (http://, https:// or socks5://); "
                f"correct or unset {name}"
            ) from error


def is_in_unproxied_network(host: str) -> bool:
    """Return whether `host` is an address in a network of NO_PROXY, such as fd07:b51a::/64.

    httpx2 takes a network there for its first address.
    """
    entries = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for entry in entries.split(","):
        try:
            network = ipaddress.ip_network(entry.strip(), strict=False)
        except ValueError:
            continue
        if address in network:
            return True
    return False


def list_set_variables(names: tuple[str, ...]) -> list[str]:
    """Return those of these variables, in capital or small letters, that are set."""
    spellings = [spelling for name in names for spelling in (name, name.lower())]
    return [name for name in spellings if os.environ.get(name)]


def suggest_network_check(problem: str) -> str:
    """Return what to check after `problem`, with the variables that may be its cause."""
    if "certificate" in problem.lower():
        variables = [name for name in CERTIFICATE_VARIABLES if os.environ.get(name)]
        if not variables:
            return "name the file with the certificates of your network in SSL_CERT_FILE"
        return f"check {' and '.join(variables)}"
    variables = list_set_variables((*PROXY_VARIABLES, "NO_PROXY"))
    return " and ".join(["check the network", *variables])
