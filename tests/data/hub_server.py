"""A real HTTP server on this machine that answers as the Hugging Face hub does where a model is
fetched.
"""

import hashlib
import json
from http.server import BaseHTTPRequestHandler

from tests.data.file_server import FileHandler, FileServer


class HubServer(FileServer):
    """Has repositories: `add(name, revision, files)`.

    Weights are on another host, as with the hub: `resolve` redirects there, by the sha256.
    `faults`, see FileServer, are those of that host; `statuses` are given, one each, instead of the
    next answers to a listing. gated: names of the models that need one of `tokens`. seen: (method,
    path, Authorization header or None) of every request.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler] | None = None) -> None:
        super().__init__(handler or HubHandler)
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.gated: set[str] = set()
        self.tokens: set[str] = set()
        self.statuses: list[int] = []
        self.seen: list[tuple[str, str, str | None]] = []
        self.storage = f"http://localhost:{self.server_port}"

    def add(self, name: str, revision: str, files: dict[str, bytes]) -> None:
        self.repositories.setdefault(name, {})[revision] = files
        self.files |= {f"/storage/{sha256(content)}": content for content in files.values()}


class HubHandler(FileHandler):
    server: HubServer

    def do_HEAD(self) -> None:  # noqa: N802
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802
        server, path = self.server, self.path.split("?")[0]
        token = self.headers.get("Authorization")
        server.seen.append((self.command, path, token))
        if path.startswith("/storage/"):
            return super().do_GET()
        if token and token.removeprefix("Bearer ") not in server.tokens:
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        listing = path.startswith("/api/models/")
        if listing and server.statuses:
            return self.refuse(server.statuses.pop(0), "", "for a while")
        owner, short, kind, revision, *file = path.removeprefix("/api/models").strip("/").split("/")
        name = f"{owner}/{short}"
        assert kind == ("revision" if listing else "resolve"), path
        if name not in server.repositories:
            # The hub does not tell strangers what exists.
            return self.refuse(
                404 if token else 401, "RepoNotFound" if token else "", "Repository not found"
            )
        if revision not in server.repositories[name]:
            return self.refuse(404, "RevisionNotFound", "Invalid rev id")
        files = server.repositories[name][revision]
        if listing:
            content = {
                "id": name,
                "sha": revision,
                "siblings": [sibling(*entry) for entry in files.items()],
            }
            return self.answer(
                200, json.dumps(content).encode(), **{"Content-Type": "application/json"}
            )
        if "/".join(file) not in files:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        if name in server.gated and not token:
            return self.refuse(401, "GatedRepo", "Access to this model is restricted")
        if name in server.gated and token == "Bearer hf_stranger":
            return self.refuse(403, "GatedRepo", "You are not in the authorized list")
        return self.give("/".join(file), files["/".join(file)], revision)

    def give(self, file: str, content: bytes, revision: str) -> None:
        headers = {"X-Repo-Commit": revision, "ETag": f'"{git_sha1(content)}"'}
        if not file.endswith(".safetensors"):
            return self.answer(200, content, **headers)
        linked = {"X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{sha256(content)}"'}
        return self.answer(
            302,
            b"",
            Location=f"{self.server.storage}/storage/{sha256(content)}",
            **headers,
            **linked,
        )

    def refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        self.answer(status, json.dumps({"error": message}).encode(), **headers)


def sibling(file: str, content: bytes) -> dict:
    """What a listing says of a file."""
    entry = {"rfilename": file, "size": len(content), "blobId": git_sha1(content)}
    large = {"sha256": sha256(content), "size": len(content), "pointerSize": 134}
    return {**entry, "lfs": large} if file.endswith((".safetensors", ".bin")) else entry


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
