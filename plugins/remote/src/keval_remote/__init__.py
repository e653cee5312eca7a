"""Results that lie in a bucket, or in another file system of fsspec. See docs/remote-results.md."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"keval_remote.crew.worker": "open_worker"})
