"""Makes certificates for tests with the `openssl` command."""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = shutil.which("openssl")
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: object) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate and its key."""

    file: Path
    key: Path


class Authority:
    """Signs certificates, which are for localhost and 127.0.0.1.

    Args:
        folder: where files are written.
        name: name of the authority and its files.
    """

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.file = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._folder = folder
        self._name = name
        subject = ("-subj", f"/CN={name}", "-days", 30)
        _openssl("req", "-x509", *_KEY, "-keyout", self._key, "-out", self.file, *subject)

    def issue(self, name: str, *, days: int = 30) -> Certificate:
        """A new certificate; one of -1 days has expired."""
        made = Certificate(self._folder / f"{self._name}-{name}.pem", self._folder / f"{self._name}-{name}.key")
        request, more = made.file.with_suffix(".csr"), made.file.with_suffix(".ext")
        more.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl("req", *_KEY, "-keyout", made.key, "-out", request, "-subj", f"/CN={name}")
        signer = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *signer, "-out", made.file, "-days", days, "-extfile", more)
        return made

    def context(self, own: Certificate | None = None, *, protocol: str | None = None) -> ssl.SSLContext:
        """A client context that trusts the authority, and shows a certificate.

        Args:
            own: the client's certificate.
            protocol: protocol offered by ALPN.
        """
        context = ssl.create_default_context(cafile=self.file)
        if own is not None:
            context.load_cert_chain(own.file, own.key)
        if protocol is not None:
            context.set_alpn_protocols([protocol])
        return context
