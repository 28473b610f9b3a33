"""TLS, client certificates and tokens of `headrace load --url`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace import Errc, UsageError, base


@dataclass(frozen=True)
class RemoteSecurity:
    """A server with TLS or tokens (--url)."""

    tls_authority: Annotated[
        Path | None,
        typer.Option(
            "--tls-authority",
            metavar="FILE",
            help="PEM file of the authorities trusted to sign the server's certificate. Default: the system's.",
        ),
    ] = None
    tls_certificate: Annotated[
        Path | None,
        typer.Option("--tls-certificate", metavar="FILE", help="PEM file of the client certificate."),
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="PEM file of the client certificate's key.")
    ] = None
    tls_name: Annotated[
        str | None,
        typer.Option(
            "--tls-name",
            metavar="NAME",
            help="Name or address that the server's certificate must match. Default: the URL's.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Send the first token in this file with each request."),
    ] = None
    plain_tokens: Annotated[
        bool,
        typer.Option(
            "--plain-tokens", help="Send the token without TLS to a non-loopback address, where a proxy adds TLS."
        ),
    ] = False

    def secure(self, endpoint: Any, host: str, *, tls: bool, local: bool) -> None:  # noqa: ANN401 - _core may lack it
        """Applies the options to an endpoint, and reads the files.

        Args:
            endpoint: a headrace._core.ServerEndpoint.
            host: host of the URL.
            tls: whether the URL asks for TLS.
            local: whether the host's address is a loopback address.
        """
        if tls and not base.built_with_tls:
            raise UsageError(
                "this build has no TLS: install OpenSSL (Debian: libssl-dev) and build Headrace again",
                Errc.not_supported,
            )
        for name in ("tls_authority", "tls_certificate", "tls_key", "tls_name"):
            if getattr(self, name) is not None and not tls:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for a server with TLS: --url grpcs://... or https://...")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("--tls-certificate and --tls-key go together: give both")
        if self.plain_tokens and self.token_file is None:
            raise UsageError("--plain-tokens needs --token-file")
        if self.token_file is not None and not (tls or local or self.plain_tokens):
            raise UsageError(
                f"the token would reach {host} unencrypted: use grpcs:// or https://, or --plain-tokens if a proxy on "
                "the way adds TLS"
            )
        endpoint.secure(
            tls=tls,
            certificate=str(self.tls_certificate or ""),
            key=str(self.tls_key or ""),
            authorities=str(self.tls_authority or ""),
            server_name=self.tls_name or host,
            token_file=str(self.token_file or ""),
        )
