"""The second level: a folder, an HTTP server, and what fsspec opens; slow, dead, lying, full and read-only ones."""

import http.server
import threading
import time
from pathlib import Path

import pytest

from cache.remote import Remote
from cache.store import Output, Store, digest_of

CONTENTS = {"a.bin": b"some words", "b.json": b"{}"}
KEY = digest_of({"step": "test"})


class Server(http.server.ThreadingHTTPServer):
    """Keeps what is PUT; `mood` says how it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.mood, self.asked = "good", 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/store"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked += 1
        mood, content = self.server.mood, self.server.files.get(self.path)
        if mood == "failing":
            self.send_error(500)
        elif mood == "silent":
            time.sleep(3)
        elif content is None:
            self.send_error(404)
        else:
            self.send_response(200)
            self.end_headers()
            if mood == "trickling":
                for n in range(30):
                    self.wfile.write(content[n : n + 1])
                    time.sleep(0.1)
            elif mood == "cut":
                self.wfile.write(content[:-1])
            else:
                self.wfile.write(b"other" if mood == "lying" else content)

    def do_PUT(self) -> None:
        self.server.asked += 1
        content = self.rfile.read(int(self.headers["Content-Length"]))
        refused = {"read-only": 405, "full": 507, "failing": 500}.get(self.server.mood)
        if refused:
            self.send_error(refused)
            return
        self.server.files[self.path] = content
        self.send_response(201)
        self.end_headers()


@pytest.fixture
def server():
    found = Server()
    yield found
    found.shutdown()
    found.server_close()


def fill(store: Store) -> None:
    store.keep_blobs(list(CONTENTS.values()))
    outputs = [Output(name, digest(content), len(content)) for name, content in CONTENTS.items()]
    store.keep_trace(KEY, "test:a", outputs, 1.5)


def digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def found(store: Store) -> dict[str, bytes] | None:
    given = store.find(KEY, list(CONTENTS))
    return given and given.contents


def urls(server: Server, tmp_path: Path) -> dict[str, str]:
    return {"file": (tmp_path / "shared").as_uri(), "http": server.url, "memory": f"memory://{tmp_path.name}"}


@pytest.mark.parametrize("kind", ["file", "http", "memory"])
def test_what_one_keeps_another_finds(kind, server, tmp_path, capsys):
    if kind == "memory":
        pytest.importorskip("fsspec", reason="fsspec is optional: pip install 'coppelius[remote]'")
    url = urls(server, tmp_path)[kind]
    fill(Store(tmp_path / "first", Remote(url, "read-write")))
    second = Store(tmp_path / "second", Remote(url))
    assert found(second) == CONTENTS
    assert found(Store(tmp_path / "second")) == CONTENTS  # and is kept near
    assert capsys.readouterr().err == ""


def test_reading_writes_nothing(server, tmp_path):
    fill(Store(tmp_path / "first", Remote(server.url)))
    assert server.files == {}
    assert found(Store(tmp_path / "second", Remote(server.url))) is None


# fmt: off
MOODS = [
    ("lying",     "is damaged; going on without it"),
    ("cut",       "is damaged; going on without it"),
    ("failing",   "Internal Server Error; going on without it"),
    ("silent",    "going on without it"),
    ("trickling", "no answer within 0.5 s; going on without it"),
]
# fmt: on


@pytest.mark.parametrize(("mood", "says"), MOODS)
def test_a_bad_one_is_said_once_and_then_left_alone(mood, says, server, tmp_path, capsys):
    fill(Store(tmp_path / "first", Remote(server.url, "read-write")))
    server.mood = mood
    store = Store(tmp_path / "second", Remote(server.url, "read-write", seconds=0.5))
    start = time.monotonic()
    for _ in range(3):
        assert found(store) is None
    assert time.monotonic() - start < 2
    asked = server.asked
    fill(store)  # works, near
    assert found(store) == CONTENTS
    said = capsys.readouterr().err
    assert (said.count("\n"), says in said, server.asked) == (1, True, asked)


def test_a_blob_of_other_bytes_is_not_taken(server, tmp_path, capsys):
    """The trace is good and a blob is not: bytes are held to their name."""
    fill(Store(tmp_path / "first", Remote(server.url, "read-write")))
    blob = next(path for path, content in server.files.items() if content == CONTENTS["a.bin"])
    server.files[blob] = b"some w0rds"
    assert found(Store(tmp_path / "second", Remote(server.url))) is None
    assert "holds other bytes; going on without it" in capsys.readouterr().err
    assert not (tmp_path / "second" / blob.removeprefix("/store/")).exists()


@pytest.mark.parametrize("mood", ["read-only", "full"])
def test_one_that_takes_nothing_is_still_read(mood, server, tmp_path, capsys):
    fill(Store(tmp_path / "first", Remote(server.url, "read-write")))
    server.mood = mood
    third = Store(tmp_path / "third", Remote(server.url, "read-write"))
    assert found(third) == CONTENTS
    fill(third)
    fill(third)
    said = capsys.readouterr().err
    assert (said.count("\n"), "nothing more is sent there" in said) == (1, True)


def test_a_dead_one(server, tmp_path, capsys):
    url = server.url
    server.shutdown()
    server.server_close()
    store = Store(tmp_path / "near", Remote(url, "read-write", seconds=0.5))
    assert found(store) is None
    fill(store)
    assert found(store) == CONTENTS
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").touch()
    store = Store(tmp_path / "near", Remote((tmp_path / "file/below").as_uri(), "read-write"))
    fill(store)
    assert found(store) == CONTENTS
    assert capsys.readouterr().err.count("nothing more is sent there") == 1


@pytest.mark.parametrize(
    ("url", "mode", "says"),
    [
        ("/folder", "read", "not a URL; write file:///folder"),
        ("file:///folder", "write", "not a mode; known: read, read-write"),
        ("nonsense://folder", "read", "nonsense"),
    ],
)
def test_what_cannot_be_opened_is_refused(url, mode, says):
    with pytest.raises(ValueError, match=says):
        Remote(url, mode)


def test_a_password_is_not_printed(capsys):
    Remote("http://me:secret@127.0.0.1:9/store").distrust("slow")
    said = capsys.readouterr().err
    assert "secret" not in said
    assert "127.0.0.1:9/store" in said


@pytest.fixture
def bucket(monkeypatch):
    """An S3-compatible server on the loopback, one empty bucket, and its URL."""
    reason = "an S3 server is no light package: pip install -e '.[test-s3]'"
    threaded = pytest.importorskip("moto.server", reason=reason)
    pytest.importorskip("s3fs", reason=reason)
    import boto3

    server = threaded.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="images")
    yield "s3://images/store", server
    server.stop()


def test_a_bucket_keeps_and_gives_and_its_end_costs_a_warning(bucket, tmp_path, capsys):
    url, server = bucket
    fill(Store(tmp_path / "first", Remote(url, "read-write", seconds=20)))
    assert found(Store(tmp_path / "second", Remote(url, seconds=20))) == CONTENTS
    assert capsys.readouterr().err == ""
    server.stop()
    late = Store(tmp_path / "third", Remote(url, seconds=1))
    assert found(late) is None
    assert capsys.readouterr().err.count("going on without it") == 1
