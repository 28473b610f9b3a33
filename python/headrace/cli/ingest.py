"""`headrace ingest`: receives packets from the network into frames on a device."""

import typer

from headrace.cli import ingest_model, ingest_pcap, ingest_send, ingest_synthetic, ingest_tcp, ingest_udp

app = typer.Typer(no_args_is_help=False)


@app.callback()
def group() -> None:
    """Receive packets into frames on a device, or send test data.

    Example: headrace ingest tcp 10.0.0.2:9000 --frame 64MiB --to cuda:0
    """


app.command("tcp")(ingest_tcp.tcp)
app.command("udp")(ingest_udp.udp)
app.command("pcap")(ingest_pcap.pcap)
app.command("synthetic")(ingest_synthetic.synthetic)
app.add_typer(ingest_send.app, name="send", help="Send test data over TCP or UDP that a receiver can verify.")
app.command("model")(ingest_model.model)
