"""Results that lie in a bucket, or in another file system of fsspec. See docs/remote-results.md."""

from keval_remote.remote import Remote

__all__ = ["Remote"]
