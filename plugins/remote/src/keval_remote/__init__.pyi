"""Results that lie in a bucket, or in another file system of fsspec. See docs/remote-results.md."""

from keval_remote.crew.worker import open_worker as open_worker
