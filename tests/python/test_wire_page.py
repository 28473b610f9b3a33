"""The page of a server in a browser: figures, form, restarts, small screens, contrast, and access by other pages."""

import http.server
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

import headrace
from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

import browser
from test_wire_command import command
from wire_serving import SECONDS, ask, halve, request, serving, third, waits

from headrace import wire

needs_browser = pytest.mark.skipif(browser.PROGRAM is None, reason="there is no Chromium here")

Tab = browser.Tab
ANSWERED = "#outcome-answered td:last-child"
OUTCOMES = ("answered", "invalid", "refused", "late", "cancelled", "failed")


@headrace.operator(query="?", answer="?")
def invert(_group, query, answer):
    """The contrary."""
    answer[0] = not query[0]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser.browser(tmp_path_factory.mktemp("browser")) as new_tab:
        yield new_tab()


@contextmanager
def shown(tab: Tab, *operators: headrace.Operator, **options: Any) -> Iterator[wire.Server]:
    """A server whose page the tab shows."""
    with serving(*operators, **options) as (server, _):
        tab.size(1280, 900)
        tab.open(f"http://127.0.0.1:{server.http_port}/")
        tab.wait("#state", "Live".__eq__)
        yield server


def infer(name: str, tensor: str, datatype: str, values: list[float]) -> bytes:
    inputs = [{"name": tensor, "datatype": datatype, "shape": [len(values)], "data": values}]
    return request(f"/v2/models/{name}/infer", json.dumps({"inputs": inputs}).encode())


def outcomes(tab: Tab) -> dict[str, str]:
    """The totals that are not 0."""
    found = {one: tab.text(f"#outcome-{one} td:last-child") for one in OUTCOMES}
    return {one: count for one, count in found.items() if count != "0"}


def fill(tab: Tab, model: str, *values: str) -> None:
    """Chooses a model, fills in its inputs and asks."""
    tab.run(f"$('answer').replaceChildren(); $('model').value = '{model}'")
    tab.run("$('model').dispatchEvent(new Event('change'))")
    for i, value in enumerate(values):
        tab.run(f"$('input-{i}').value = {json.dumps(value)}")
    tab.run("document.querySelector('#ask button').click()")


def answer(tab: Tab) -> str:
    return tab.wait("#answer", bool)


def assert_rates_are_those_of_the_readings(tab: Tab) -> None:
    """The displayed rates follow from the readings of the last seconds, at one moment."""
    script = """(() => {
      const [first, last] = [readings[0], readings.at(-1)];
      const seconds = last.status.uptime - first.status.uptime;
      const found = between(first.all, last.all, seconds, last.status.bounds);
      const texts = [rate(found.answered), duration(found.p50), duration(found.p99), rate(found.errors)];
      return [seconds, texts, ["rate", "p50", "p99", "errors"].map((id) => $(id).textContent)];
    })()"""
    seconds, expected, texts = tab.run(script)
    assert texts == expected
    assert seconds <= 10.5


def get(url: str) -> tuple[Any, bytes]:
    with urllib.request.urlopen(url, timeout=SECONDS) as reply:
        return reply.headers, reply.read()


def test_the_page_is_one_file_under_a_policy_that_lets_nothing_else_in():
    with serving(third()) as (server, _):
        headers, page = get(f"http://127.0.0.1:{server.http_port}/")
        also, status = get(f"http://127.0.0.1:{server.http_port}/status.json")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert also["Content-Type"] == "application/json"
    for one in (headers, also):
        assert one["Cache-Control"] == "no-store"
        assert one["X-Content-Type-Options"] == "nosniff"
        assert one["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in one if name.lower().startswith("access-control")]
    policy = dict(part.partition(" ")[::2] for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert b"<title>Headrace</title>" in page
    assert json.loads(status)["models"][0]["inputs"] == [{"name": "query", "datatype": "FP64", "shape": [-1]}]


def test_a_server_without_a_page_has_neither_it_nor_its_figures():
    with serving(third(), page=False) as (server, _):
        replies = ask(server, request("/") + request("/status.json"), 2)
    assert [one.status for one in replies] == [404, 404]


def test_the_command_says_where_the_page_is():
    with command("light") as (_, said):
        assert said["page"] == f"{said['url']}/"
        assert b"<title>Headrace</title>" in get(said["page"])[1]
    with command("light", "--no-page") as (_, said):
        assert said["page"] is None
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(said["url"])
        refused.value.close()
        assert refused.value.code == 404


def test_the_status_counts_what_the_server_counts():
    with serving(third(), halve()) as (server, _):
        ask(server, infer("third", "query", "FP64", [1.0, 2.0]) * 3 + infer("third", "x", "FP64", [1.0]), 4)
        status = json.loads(get(f"http://127.0.0.1:{server.http_port}/status.json")[1])
        counted = server.model_statistics()[0].http
        done = server.statistics()
    first, second = status["models"]
    assert first["http"]["requests"] == {one: getattr(counted.requests, one) for one in OUTCOMES}
    assert first["http"]["queries"]["answered"] == 6
    assert first["http"]["durations"] == {"counts": counted.durations.counts, "sum": counted.durations.sum}
    assert sum(second["http"]["durations"]["counts"]) == 0
    assert status["bounds"] == counted.durations.bounds
    assert status["requests"]["http"]["answered"] == done.http.answered - 1 == 3  # not yet the reply with the figures
    assert status["requests"]["http"]["invalid"] == done.http.invalid == 1
    assert status["memory"]["limit_bytes"] == done.memory_limit_bytes
    assert [one["name"] for one in status["devices"]] == ["cpu:0"]
    assert status["devices"][0]["memory_limit_bytes"] > 0
    assert (first["device"], first["ready"], second["batch_max"]) == ("cpu:0", True, 1024)


def test_the_status_goes_on_counting_a_model_that_was_unloaded():
    with serving(third(), halve()) as (server, engines):
        ask(server, infer("third", "query", "FP64", [1.0]) * 2, 2)
        server.unload("third")
        status = json.loads(get(f"http://127.0.0.1:{server.http_port}/status.json")[1])
        assert [one["name"] for one in status["models"]] == ["halve"]
        assert [(one["name"], one["http"]["requests"]["answered"]) for one in status["unloaded"]] == [("third", 2)]
        server.load(wire.model(engines[0]))
        status = json.loads(get(f"http://127.0.0.1:{server.http_port}/status.json")[1])
        assert [(one["name"], one["http"]["requests"]["answered"]) for one in status["models"]] == [
            ("third", 2),
            ("halve", 0),
        ]
        assert status["unloaded"] == []


@needs_browser
def test_a_model_that_is_unloaded_leaves_the_page_and_comes_back(tab: Tab):
    with serving(third()) as (server, engines):
        tab.open(f"http://127.0.0.1:{server.http_port}/")
        tab.wait("#state", "Live".__eq__)
        ask(server, infer("third", "query", "FP64", [1.0]) * 9, 9)
        tab.wait(ANSWERED, "9".__eq__)
        server.unload("third")
        tab.wait("#models", "".__eq__)
        assert tab.text("#state") == "Live"  # neither lost nor restarted
        assert tab.text(ANSWERED) == "9"
        server.load(wire.model(engines[0]))
        tab.wait("#model-0 .answered", "9".__eq__)
        assert tab.text("#state") == "Live"


@needs_browser
def test_figures_are_those_of_the_server_and_go_on(tab: Tab):
    with shown(tab, third(), halve()) as server:
        assert outcomes(tab) == {}
        good, bad = infer("third", "query", "FP64", [1.0]), infer("third", "x", "FP64", [1.0])
        ask(server, good * 9 + bad * 2, 11)
        tab.wait(ANSWERED, "9".__eq__)
        assert outcomes(tab) == {"answered": "9", "invalid": "2"}
        durations = server.model_statistics()[0].http.durations
        bounds = [0, *durations.bounds]
        p99 = tab.run("percentile(0.99, readings.at(-1).all.durations, readings.at(-1).status.bounds)")
        last = max(i for i, count in enumerate(durations.counts) if count)
        assert bounds[last] <= p99 <= bounds[last + 1]
        assert_rates_are_those_of_the_readings(tab)
        assert tab.text("#model-0 .answered") == "9"
        assert tab.text("#model-0 .errors") == "2"
        assert tab.text("#model-1 .answered") == "0"
        assert "x\tFP32 [3]" in tab.text("#model-1 tbody")
        ask(server, good * 1500, 1500)
        tab.wait(ANSWERED, "1,509".__eq__)
        assert_rates_are_those_of_the_readings(tab)
        tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        table = tab.wait("#rate-table tbody", bool)
        answered = [row.split("\t")[1].replace(" K", "e3") for row in table.splitlines()]
        assert max(float(one) for one in answered if one[0].isdigit()) > 0


@needs_browser
def test_the_time_of_the_operator_shows_in_its_stage(tab: Tab):
    tensor = {"name": "query", "datatype": "INT64", "shape": [1], "data": [3000]}
    infer = request("/v2/models/waits/infer", json.dumps({"inputs": [tensor]}).encode())
    with serving(waits()) as (server, _):
        tab.open(f"http://127.0.0.1:{server.http_port}/")
        tab.wait("#time-engine", lambda text: text != "")
        ask(server, infer * 20, 20)
        shown = tab.wait("#time-engine", lambda text: " ms" in text)
    figures = [float(one) for one in re.findall(r"([\d.]+) ms", shown)]
    assert len(figures) == 3  # mean, p50 and p99
    assert figures[0] >= 3


@needs_browser
def test_rates_and_percentiles_of_known_readings(tab: Tab):
    with shown(tab, third()):
        bounds = "[1e-6, 2e-6, 5e-6]"
        percentiles = [tab.run(f"percentile({p}, [0, 90, 10, 0], {bounds})") for p in (0.5, 0.99)]
        assert percentiles == pytest.approx([1e-6 + 50 / 90 * 1e-6, 2e-6 + 9 / 10 * 3e-6])
        assert tab.run(f"percentile(0.5, [0, 0, 0, 0], {bounds})") is None
        assert tab.run(f"percentile(0.5, [0, 0, 0, 1], {bounds}) === Infinity")
        counts = "{answered: %d, invalid: %d, refused: 0, late: 0, cancelled: 0, failed: 0}"
        before = f"{{outcomes: {counts % (100, 5)}, durations: [0, 80, 0, 0]}}"
        after = f"{{outcomes: {counts % (300, 25)}, durations: [0, 80, 200, 0]}}"
        found = tab.run(f"between({before}, {after}, 4, {bounds})")
        assert (found["answered"], found["errors"]) == (50, 5)
        assert found["p50"] == pytest.approx(3.5e-6)
        written = [tab.run(f"duration({one})") for one in (1.5e-6, 4.21e-4, 0.25, 3)]
        assert written == ["1.5 µs", "421 µs", "250 ms", "3 s"]
        assert tab.run("age(3700)") == "1 h 1 min"


@needs_browser
def test_the_page_outlives_a_restart_of_the_server(tab: Tab):
    good = infer("third", "query", "FP64", [1.0])
    with shown(tab, third()) as server:
        port = server.http_port
        ask(server, good * 50, 50)
        tab.wait(ANSWERED, "50".__eq__)
    assert tab.wait("#state", lambda text: text != "Live") == "Connection lost"
    assert tab.text(ANSWERED) == "50"
    tab.wait("#about", lambda text: re.match(r"for ([2-9] s|\d\d+ s|\d+ min)", text) is not None)
    with headrace.Engine("cpu", third()) as engine, wire.Server([wire.model(engine)], http_port=port) as server:
        assert tab.wait("#state", lambda text: text != "Connection lost") == "Live again after a restart"
        assert "restarted at" in tab.text("#about")
        assert tab.text(ANSWERED) == "0"
        ask(server, good * 3, 3)
        tab.wait(ANSWERED, "3".__eq__)
        assert tab.run("series.every(one => !(one.answered < 0 || one.errors < 0))")
        assert tab.run("series.some(one => one.answered === null) && series.some(one => one.answered > 0)")


@needs_browser
def test_the_form_asks_any_model(tab: Tab):
    with shown(tab, third(), halve(), invert()) as server:
        fill(tab, "third", "4.5")
        assert "1.5" in answer(tab).split()
        # Two queries, and a number that no double can represent.
        fill(tab, "halve", "2, 4, 6 8 10 12", "9007199254740993 5")
        said = answer(tab)
        assert "1, 2, 3, 4, 5, 6" in said
        assert "-9007199254740993, -5" in said
        assert "true, false" in said
        assert "FP64 [2, 3]" in said
        fill(tab, "halve", "", "")  # zeros
        assert "0, 0, 0" in answer(tab)
        fill(tab, "invert", "false")
        assert "true" in answer(tab)
        fill(tab, "invert", "1")
        assert "false" in answer(tab)
        assert server.statistics().failed == 0


@needs_browser
def test_the_form_says_what_is_wrong(tab: Tab):
    with shown(tab, third(), halve()) as server:
        for values, message in (
            (("1 2", "3"), "x: 2 values are not a whole number of queries of 3"),
            (("1 2 3", "3.5"), "n: '3.5' is not a valid INT64"),
            (("1 2 much", "3"), "x: 'much' is not a valid FP32"),
            (("1 2 3 4 5 6", "1"), "n: values for 1 queries, but another input has 2"),
        ):
            fill(tab, "halve", *values)
            assert answer(tab) == message
            assert tab.run("document.activeElement.getAttribute('aria-invalid')") == "true"
        assert server.model_statistics()[1].http.requests.invalid == 0  # the server was not asked
        fill(tab, "halve", "1 2 3", "99999999999999999999")
        assert answer(tab).startswith("Error 400: ")
        assert "99999999999999999999" in answer(tab) or "INT64" in answer(tab)
        assert server.model_statistics()[1].http.requests.invalid == 1
    fill(tab, "third", "1")
    assert answer(tab).startswith("The server gave no answer")


@needs_browser
def test_a_name_is_text_and_no_markup(tab: Tab):
    with headrace.Engine("cpu", third()) as engine:
        tensor = wire.Tensor("<img src=x onerror=alert(1)>", wire.DataType.fp64)
        model = wire.Model(engine, [tensor], [wire.Tensor("y", wire.DataType.fp64)], name="third")
        with wire.Server([model], http_port=0) as server:
            tab.open(f"http://127.0.0.1:{server.http_port}/")
            tab.wait("#state", "Live".__eq__)
            assert "<img src=x" in tab.text("#model-0")
            assert tab.run("document.querySelectorAll('img').length") == 0


@needs_browser
def test_nothing_is_asked_of_others_and_nothing_goes_wrong(tab: Tab):
    before = len(tab.events("Network.requestWillBeSent"))
    with shown(tab, third()) as server:
        fill(tab, "third", "3")
        answer(tab)
        urls = {one["request"]["url"] for one in tab.events("Network.requestWillBeSent")[before:]}
        base = f"http://127.0.0.1:{server.http_port}"
        of_page = {url for url in urls if not url.startswith("data:")}
        assert of_page == {f"{base}/", f"{base}/status.json", f"{base}/v2/models/third/infer"}
        wrong = [one["entry"]["text"] for one in tab.events("Log.entryAdded") if one["entry"]["source"] == "security"]
        assert wrong == []
        assert tab.events("Runtime.exceptionThrown") == []


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen_and_has_contrast(tab: Tab, width: int, *, dark: bool):
    script = """(() => {
      const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
      const light = (color) => color.slice(0, 3).map((c) => c / 255)
        .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const back = (element) => {
        for (; element; element = element.parentElement) {
          const color = rgb(getComputedStyle(element).backgroundColor);
          if (color.length === 3) return color;
        }
      };
      return [...document.querySelectorAll("body *")]
        .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
        .filter((one) => one.checkVisibility() && one.tagName !== "SCRIPT")
        .map((one) => {
          const style = getComputedStyle(one);
          const pair = [light(rgb(one.closest("svg") ? style.fill : style.color)), light(back(one))];
          return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), one.textContent];
        });
    })()"""
    with shown(tab, third(), halve(), headrace.light()):
        tab.size(width, 900, dark=dark)
        fill(tab, "halve", "1 2", "3")
        answer(tab)
        contrasts = tab.run(script)
        assert len(contrasts) > 60
        assert min(contrasts)[0] >= 4.5
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run("matchMedia('(prefers-color-scheme: dark)').matches") == dark
        fields = "[...document.querySelectorAll('input, select, textarea, button')]"
        heights = f"{fields}.filter((one) => one.checkVisibility()).map((one) => one.clientHeight)"
        assert min(tab.run(heights)) >= 32  # large enough for a finger


@needs_browser
def test_a_screen_reader_finds_its_way(tab: Tab):
    with shown(tab, third(), halve()):
        nodes = [one for one in tab.command("Accessibility.getFullAXTree")["nodes"] if not one.get("ignored")]

        def names(role: str) -> list[str]:
            return [one.get("name", {}).get("value", "") for one in nodes if one["role"]["value"] == role]

        for landmark in ("banner", "main", "contentinfo"):
            assert len(names(landmark)) == 1, landmark
        titles = [
            "Now",
            "The last minute",
            "Where the time goes",
            "How requests ended",
            "Models",
            "Devices",
            "Ask a query",
        ]
        assert names("region") == titles
        assert names("article") == ["third", "halve"]
        fields = [*names("textbox"), *names("combobox"), *names("button"), *names("DisclosureTriangle")]
        assert {"query, FP64", "Model", "Ask", "Requests per second as a table"} <= set(fields)
        assert all(fields)
        images = names("image")
        assert len(images) == 2
        assert all("in the last minute" in name for name in images)
        levels = tab.run("[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert tab.run("document.documentElement.lang") == "en"
        assert tab.run("['state', 'answer'].map(id => $(id).getAttribute('role'))") == ["status", "status"]
        moving = {"name": "prefers-reduced-motion", "value": "reduce"}
        tab.command("Emulation.setEmulatedMedia", features=[moving])
        assert tab.run("getComputedStyle(document.querySelector('button')).transitionDuration") == "0s"


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title>")

    def log_message(self, *_arguments: object) -> None:
        pass


@needs_browser
def test_a_page_of_another_origin_reads_nothing(tab: Tab):
    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    thread = threading.Thread(target=elsewhere.serve_forever)
    thread.start()
    try:
        with serving(third()) as (server, _):
            tab.open(f"http://127.0.0.1:{elsewhere.server_port}/")
            browser.wait_for(lambda: tab.run("document.title"), "elsewhere".__eq__)
            base = f"http://127.0.0.1:{server.http_port}"
            body = json.dumps({"inputs": [{"name": "query", "datatype": "FP64", "shape": [1], "data": [1]}]})
            for url, options in (
                ("status.json", "{}"),
                ("v2/models/third", "{}"),
                ("v2/models/third/infer", json.dumps({"method": "POST", "body": body})),
            ):
                read = f"fetch('{base}/{url}', {options}).then(one => one.text(), error => error.name)"
                assert tab.run(read) == "TypeError", url
                opaque = f"fetch('{base}/{url}', {{...{options}, mode: 'no-cors'}}).then(one => one.text(), () => '')"
                assert tab.run(opaque) == "", url
    finally:
        elsewhere.shutdown()
        thread.join()
        elsewhere.server_close()
