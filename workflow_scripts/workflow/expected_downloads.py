"""The sha256 that a downloaded file may have."""

from workflow_scripts.data.sources.declared import Source, find_expected_sha256


def list_expected_sha256(source: Source) -> list[str]:
    """Return the sha256 of a file in each of its packings: those that sources.yaml declares.

    Of a file without one there, that of its first download; none before that.
    """
    expected = [find_expected_sha256(packing) for packing in source.alternatives]
    return [sha256 for sha256 in expected if sha256 is not None]
