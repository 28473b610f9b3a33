"""`headrace ingest`: packets from the network to frames on a device."""

import typer

from headrace.cli import ingest_model, ingest_receive, ingest_send

app = typer.Typer()
app.callback(invoke_without_command=True)(ingest_receive.receive)
app.command("send")(ingest_send.send)
app.command("model")(ingest_model.model)
