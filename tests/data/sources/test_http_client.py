"""Downloads follow the network's settings in the environment, or say which of them they cannot."""

from pathlib import Path

import httpx2
import pytest

from tests.data.file_server import FileServer, serving
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.fetch import Request, RetryPolicy, download
from workflow_scripts.data.sources.http_client import (
    is_in_unproxied_network,
    make_client,
    suggest_network_check,
)

CONTENT = b"the file"
ONE_ATTEMPT = RetryPolicy(attempts=1, connection_attempts=1, first_wait=0.0)
SETTINGS = (
    *("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("all_proxy", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
NOBODY = "http://127.0.0.1:9"  # nothing listens at the port `discard`


@pytest.fixture(autouse=True)
def plain_network(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with serving() as running:
        yield running


def get(url: str, folder: Path) -> bytes:
    part = folder / "part"
    request = Request(url, part, len(CONTENT), pinned=False)
    download(request, lambda done, total: None, ONE_ATTEMPT)
    return part.read_bytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "ftp://user:secret@host:1"),
        ("ALL_PROXY", "socks4://host:1080"),
        ("http_proxy", "http://[::1"),
        ("all_proxy", "http://secret-ü host:1"),
        ("SSL_CERT_FILE", "/no/cacert.pem"),
        ("SSL_CERT_FILE", "/dev/null"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name, value, monkeypatch, tmp_path):
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=f"{name}.*correct or unset {name}$") as raised:
        get("https://example.invalid/file", tmp_path)
    assert "secret" not in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [
        "localhost,fd07:b51a::/64",
        "[::1]",
        "[::1]:80",
        "*",
        "a b",
        "http://[",
        ".org:80",
        "fe80::1%e",
    ],
)
def test_every_entry_of_no_proxy_is_taken(value, monkeypatch, server: FileServer, tmp_path):
    server.files["/file"] = CONTENT
    monkeypatch.setenv("NO_PROXY", f"{value},127.0.0.1")
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    assert get(f"{server.url}/file", tmp_path) == CONTENT


def test_a_proxy_is_asked(monkeypatch, server: FileServer, tmp_path):
    url = "http://192.0.2.1/file"  # an address that is kept free for documentation
    server.files[url] = CONTENT
    monkeypatch.setenv("HTTP_PROXY", server.url)
    assert get(url, tmp_path) == CONTENT


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_an_address_in_a_network_of_no_proxy_is_asked_itself(
    name, monkeypatch, server: FileServer, tmp_path
):
    server.files["/file"] = CONTENT
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    monkeypatch.setenv(name, "fd07:b51a::/64, 127.0.0.0/8")
    assert get(f"{server.url}/file", tmp_path) == CONTENT


@pytest.mark.parametrize(
    ("host", "is_inside"),
    [
        ("fd07:b51a::12", True),
        ("fd07:b51b::12", False),
        ("10.0.3.4", True),
        ("10.1.0.0", False),
        ("::1", True),
        ("example.org", False),
    ],
)
def test_networks_of_no_proxy(host, is_inside, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "localhost,fd07:b51a::/64, 10.0.0.0/16,::1,nonsense/8")
    assert is_in_unproxied_network(host) == is_inside


@pytest.mark.parametrize("proxy", [NOBODY, "socks5://127.0.0.1:9", "127.0.0.1:9"])
def test_a_proxy_that_does_not_answer_is_named(proxy, monkeypatch, tmp_path):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(UserError, match=r"; check the network and ALL_PROXY$"):
        get("http://192.0.2.1/file", tmp_path)


def test_advice_names_what_is_set(monkeypatch):
    refused = "[Errno 111] Connection refused"
    unknown = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"
    assert suggest_network_check(refused) == "check the network"
    assert suggest_network_check(unknown).endswith("in SSL_CERT_FILE")
    monkeypatch.setenv("https_proxy", NOBODY)
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", "/x")
    assert suggest_network_check(refused) == "check the network and https_proxy and NO_PROXY"
    assert suggest_network_check(unknown) == "check SSL_CERT_FILE"


def test_what_is_no_url_is_refused():
    with pytest.raises(UserError, match=r"^http://\[::1: "):
        make_client("http://[::1")


def test_the_client_follows_redirects_and_waits_a_bounded_time():
    with make_client("http://192.0.2.1/") as client:
        assert client.follow_redirects and client.max_redirects == 5
        assert client.timeout == httpx2.Timeout(30, connect=10)
