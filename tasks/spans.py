"""A build as a trace that chrome://tracing and ui.perfetto.dev open: a slice a step, a row a process.

Published: the "Trace Event Format" of Chromium; a complete event (ph X) has start and duration in µs.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from tasks.restore import Span


def write_trace(path: Path, spans: Iterable[Span]) -> None:
    """Writes the steps' spans; times count from the first of them."""
    spans = sorted(spans, key=lambda span: span.start)
    begin = spans[0].start if spans else 0.0
    rows = list(dict.fromkeys(span.process for span in spans))
    events: list[dict[str, object]] = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": n, "args": {"name": f"builder {n}"}}
        for n in range(len(rows))
    ]
    events += [
        {
            "name": span.step,
            "cat": f"{span.step.partition(':')[0]},{span.what}",
            "ph": "X",
            "ts": round((span.start - begin) * 1e6),
            "dur": max(round((span.end - span.start) * 1e6), 1),
            "pid": 1,
            "tid": rows.index(span.process),
            "args": {"what": span.what},
        }
        for span in spans
    ]
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n", encoding="utf-8")
