"""Model providers that speak a vendor's protocol: hosted APIs, and servers of one's own."""

from keval_providers.hosted import HostedProvider
from keval_providers.table import ALIASES, PROVIDERS

__all__ = ["ALIASES", "PROVIDERS", "HostedProvider"]
