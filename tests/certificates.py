"""A private authority, as a company has one, and the certificates that it issues."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]

NAME = "the company"
_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@attrs.frozen
class Authority:
    """An authority whose certificate is `folder/ca.pem`."""

    folder: Path
    _key: ec.EllipticCurvePrivateKey = attrs.field(factory=lambda: ec.generate_private_key(ec.SECP256R1()), init=False)

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.pem"

    def __attrs_post_init__(self) -> None:
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._signed(self._key, NAME, constraints)
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: str | None = None) -> tuple[Path, Path]:
        """Write a certificate for 127.0.0.1 and its key, and return their files."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        files[0].write_bytes(self._signed(key, name, address).public_bytes(serialization.Encoding.PEM))
        lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
        files[1].write_bytes(key.private_bytes(*form))
        return files

    def _signed(self, key: ec.EllipticCurvePrivateKey, name: str, extension: x509.ExtensionType) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, of)]) for of in (name, NAME))
        signer, usage = self._key.public_key(), dict.fromkeys(_USES, False)
        usage["key_cert_sign" if name == NAME else "digital_signature"] = True
        return (
            x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            # Python verifies strictly from 3.13 on (RFC 5280, sections 4.2.1.1 to 4.2.1.3).
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .sign(self._key, SHA256())
        )
