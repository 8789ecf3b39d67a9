"""Results and indexes that nobody measured or published, as large as one likes: what work on them costs."""

import json
from itertools import product
from pathlib import Path


def write_index(folder: Path, builds: int) -> list[str]:
    """A page as PyTorch's, with one wheel for this machine of each of as many nightlies; returns their versions."""
    from datetime import date, timedelta

    from accel_micro.builds import Target

    tag, last = Target.here().tags[0], date(2026, 11, 27)
    days = [last - timedelta(days) for days in range(builds)][::-1]
    versions = [f"2.15.0.dev{day:%Y%m%d}" for day in days]
    lines = [
        f'<a href="https://example.org/whl/nightly/cpu/torch-{version}%2Bcpu-{tag}.whl" '
        f'data-core-metadata="sha256={index:064x}" data-upload-time="{day} 09:30:00+00:00">'
        f"torch-{version}+cpu-{tag}.whl</a><br/>"
        for index, (version, day) in enumerate(zip(versions, days, strict=True))
    ]
    (folder / "torch").mkdir(parents=True)
    page = "\n".join(["<!DOCTYPE html>", "<html><body>", *lines, "</body></html>"])
    (folder / "torch" / "index.html").write_text(page, encoding="utf-8")
    return versions


def write_results(folder: Path, cases: int, processes: int, builds: int = 2) -> list[str]:
    """Results of so many builds, a file each, with interleaved processes of so many cases; returns their versions."""
    import random
    from datetime import date, timedelta

    from accel_micro.builds import Ledger, identify
    from accel_micro.measure.process import SAMPLES, Process
    from accel_micro.measure.records import Case, Check, Record, Work

    days = [date(2026, 11, 27) - timedelta(days) for days in range(builds)][::-1]
    versions = [f"2.15.0.dev{day:%Y%m%d}" for day in days]
    draw = random.Random(1).gauss
    known = [identify(version) for version in versions]
    Ledger.beside(folder).remember_all(known)
    (folder / "machine").mkdir(parents=True)
    for side, build in enumerate(known):
        path = folder / "machine" / f"{build.id[:8]}-torch-py3.11.processes.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number, round_ in product(range(cases), range(processes)):
                case = Case(
                    f"family{number % 12}.op", "forward", "cpu", "float32", f"n={number} m=1024 k=1024"
                )
                slower = 1.06 if side == builds - 1 and number % 100 == 0 else 1.0
                seconds = 1e-5 * slower * (1 + draw(0, 0.01))
                samples = tuple(seconds * (1 + draw(0, 0.003)) for _ in range(SAMPLES))
                process = Process("cpu", "throughput", samples, samples, (1.0,) * SAMPLES, 977)
                record = Record(
                    case,
                    clocks={"throughput": process},
                    check=Check(3.1e-7, 2.4e-6, 8.8e-7),
                    work=Work(2e9, 1.2e7),
                    precision={"threads": 2, "float32_matmul_precision": "highest", "mkldnn": True},
                    seconds={"prepare": 0.1, "check": 0.2, "measure": 1.2},
                    machine="machine",
                    build=build.id,
                    environment="torch-py3.11",
                    session="5f0c",
                    round=round_ + 1,
                    started=f"2026-11-27T{10 + round_:02d}:{(2 * number + side) % 60:02d}:00+00:00",
                )
                file.write(json.dumps(record.to_json(), separators=(",", ":")) + "\n")
    return versions
