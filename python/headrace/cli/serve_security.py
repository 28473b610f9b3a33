"""TLS, client certificates and tokens of `headrace serve`: options, warnings, and reloading of files."""

import ipaddress
import os
import signal
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from headrace import Errc, UsageError, base
from headrace.cli import show
from headrace.errors import Error
from headrace.serve_log import ServerLog, Value
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.cli.serve_options import Limits
    from headrace.wire import Server

_SOON_SECONDS = 7 * 24 * 3600.0
"""A certificate that expires within this time deserves a warning: automatic renewal happens a month before."""
_OTHERS = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True)
class Security:
    """Who may ask, and what others can read."""

    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate",
            metavar="FILE",
            help="Enable TLS: PEM file of the server's certificate, followed by its intermediate certificates.",
        ),
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="PEM file of the server certificate's key.")
    ] = None
    tls_clients: Annotated[
        Path | None,
        typer.Option(
            "--tls-clients",
            metavar="FILE",
            help="Require client certificates (mutual TLS): PEM file of the authorities that may sign them.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Require a token with each request: file of tokens, one per line, each followed by a space and its "
            "name.",
        ),
    ] = None
    plain_tokens: Annotated[
        bool,
        typer.Option(
            "--plain-tokens", help="Accept tokens without TLS on a non-loopback address, where a proxy adds TLS."
        ),
    ] = False

    @property
    def has_tls(self) -> bool:
        """Whether the server speaks TLS."""
        return self.tls_certificate is not None

    @property
    def has_files(self) -> bool:
        """Whether there are files to reload."""
        return self.has_tls or self.token_file is not None

    @property
    def takes_hangup(self) -> bool:
        """Whether SIGHUP reloads files instead of ending the server: if there are any, or systemd may `reload` it."""
        return self.has_files or "NOTIFY_SOCKET" in os.environ

    @property
    def asked_of_clients(self) -> list[str]:
        """What a client must present."""
        return [*(["a certificate"] if self.tls_clients else []), *(["a token"] if self.token_file else [])]

    def arguments(self, address: str) -> dict[str, Any]:
        """The given options as arguments of headrace.wire.Server."""
        if self.has_tls and not base.built_with_tls:
            raise UsageError(
                "this build has no TLS: install OpenSSL (Debian: libssl-dev) and build Headrace again",
                Errc.not_supported,
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("--tls-certificate and --tls-key go together: give both")
        if self.tls_clients is not None and not self.has_tls:
            raise UsageError("--tls-clients needs TLS: also give --tls-certificate and --tls-key")
        if self.plain_tokens and self.token_file is None:
            raise UsageError("--plain-tokens needs --token-file")
        is_open = not ipaddress.ip_address(address).is_loopback
        if self.token_file is not None and is_open and not (self.has_tls or self.plain_tokens):
            raise UsageError(
                f"tokens would reach {address} unencrypted: give --tls-certificate and --tls-key, or --plain-tokens if "
                "a proxy in front of the server adds TLS"
            )
        names = ("tls_certificate", "tls_key", "tls_clients", "token_file", "plain_tokens")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def warn_of_others(address: str, security: Security, limits: "Limits", log: ServerLog | None) -> None:
    """Warns of what programs on other machines, and other users of this one, can do."""
    for file in (security.tls_key, security.token_file):
        if file is not None and _is_open(file):
            warning = f"Other users can read {printable(str(file))}: restrict it to its owner with chmod 600."
            _tell(log, "file_open_to_others", "warning", warning, file=str(file))
    if ipaddress.ip_address(address).is_loopback:
        return
    said = []
    if not security.has_tls:
        said.append("nothing is encrypted" + (", not even tokens" if security.token_file is not None else ""))
    if not security.asked_of_clients:
        said.append("clients are not authenticated")
    if not said:
        return
    warning = f"Anyone who reaches {address} may send requests: {', and '.join(said)}."
    if security.asked_of_clients:
        warning = f"{', and '.join(said).capitalize()}: anyone on the network path to {address} can read all traffic."
    if limits.shared_memory:
        warning += " Clients can also make the server read and write shared memory of this machine (/dev/shm)."
    if limits.cuda_shared_memory:
        warning += " Clients can also make the server read and write GPU memory that programs of this machine share."
    if limits.model_control:
        warning += " Clients can also reload models and take them away from other clients."
    _tell(log, "open_to_others", "warning", warning, address=address)


def tell_of_certificate(server: "Server", log: ServerLog | None) -> None:
    """Reports when the server's certificate expires, to the log or if it is soon."""
    ends = server.statistics().certificate_ends
    if ends == 0:
        return
    until = datetime.fromtimestamp(ends, UTC).isoformat().replace("+00:00", "Z")
    left = ends - time.time()
    if log is not None:
        log.write("certificate", "info" if left > _SOON_SECONDS else "warning", ends=until)
    elif left <= _SOON_SECONDS:
        said = "has ended" if left < 0 else "ends soon"
        show.stderr().print(f"The server's certificate {said}: {until}.", markup=False, soft_wrap=True)


class Reading:
    """Context in which SIGHUP makes the next look() reload a server's certificates and tokens.

    Without such files the signal keeps its meaning, unless systemd may send it. Use it in the main thread, as Python
    requires of signal handlers.
    """

    def __init__(self, security: Security, log: ServerLog | None) -> None:
        self._security = security
        self._log = log
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        """Installs the handler."""
        if self._security.takes_hangup:
            self._before = signal.signal(signal.SIGHUP, self._note)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Restores the previous handler."""
        if self._security.takes_hangup:
            signal.signal(signal.SIGHUP, self._before)

    def look(self, server: "Server") -> None:
        """Reloads the files if SIGHUP came. If they are invalid, the previous ones stay in use."""
        if not self._asked:
            return
        self._asked = False
        if not self._security.has_files:
            return
        try:
            server.reload_credentials()
        except Error as error:
            warning = f"The files could not be reloaded; the previous ones stay in use: {error}"
            _tell(self._log, "credentials_failed", "error", warning)
            return
        _tell(self._log, "credentials_read", "info", "Certificates and tokens were reloaded.")
        tell_of_certificate(server, self._log)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & _OTHERS)
    except OSError:
        return False  # the server reads it and reports errors


def _tell(log: ServerLog | None, event: str, level: str, sentence: str, **values: Value) -> None:
    if log is not None:
        log.write(event, level, **values, message=sentence)
    else:
        show.stderr().print(sentence, markup=False, soft_wrap=True)
