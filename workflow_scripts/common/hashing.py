"""Canonical JSON and digests: equal content gives equal text."""

import hashlib
import json
from typing import Any


def format_canonical_json(content: Any) -> str:
    """Format content as JSON with sorted keys and no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(content: Any) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical JSON."""
    return hashlib.sha256(format_canonical_json(content).encode()).hexdigest()[:16]
