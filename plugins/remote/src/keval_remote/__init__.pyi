"""Results that lie in a bucket, or in another file system of fsspec. See docs/remote-results.md."""

from keval_remote.crew.worker import CrewWorker as CrewWorker, open_worker as open_worker
from keval_remote.remote import Remote as Remote
