"""Reading what torch's operator benchmark times, without running it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.catalogue.operator_benchmark import (
    FOLDER,
    Benchmarked,
    read,
    read_checkout,
    read_source,
    write,
)

SUITE = Path(__file__).parents[2] / "benchmarks" / "coverage"

SOURCE = """
import operator_benchmark as op_bench
raise SystemExit("this file was run")

ops = op_bench.op_list(
    attr_names=["op_name", "op_func"],
    attrs=[
        ["abs", torch.abs],
        ("pool", lambda kernel: nn.Pool(kernel)),
        # ["left_out", torch.left_out],
        ["abs", torch.other],
    ],
)


class Named(op_bench.TorchBenchmarkBase):
    def init(self, mode):
        self.set_module_name("quantize")
        if mode == "D":
            self.set_module_name("dequantize")


class Unnamed(op_bench.TorchBenchmarkBase):
    def forward(self, x):
        return f(x)


class Half(op_bench.TorchBenchmarkBase):
    def init(self, op):
        self.set_module_name(f"bmm (actual op={op}")


class OfTheList(op_bench.TorchBenchmarkBase):
    def init(self, op_func):
        self.set_module_name(op_func.__name__)


if torch.cuda.is_available():
    op_bench.generate_pt_test(short + long, Named)
op_bench.generate_pt_gradient_test(short, Named)
for config in (short, long):
    op_bench.generate_pt_test(config, Unnamed)
op_bench.generate_pt_test(short, Half)
op_bench.generate_pt_tests_from_op_list(ops, short, OfTheList)
"""


def test_lists_and_classes_are_read_and_nothing_is_run() -> None:
    assert read_source(SOURCE) == [
        ("abs", "torch.abs"),
        ("pool", "lambda kernel: nn.Pool(kernel)"),
        ("quantize", ""),
        ("dequantize", ""),
        ("Unnamed", ""),
        ("bmm", ""),
    ]


def test_a_checkout_is_read_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "some_test.py").write_text(SOURCE)
    (folder / "configs.py").write_text(SOURCE)
    found = read_checkout(tmp_path, "c0ffee")
    assert [each.key for each in found][:2] == ["some_test.abs", "some_test.pool"]
    assert {(each.file, each.commit) for each in found} == {("some_test", "c0ffee")}
    with pytest.raises(FileNotFoundError, match="no checkout of PyTorch"):
        read_checkout(tmp_path / "elsewhere", "c0ffee")


texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20)


@given(st.dictionaries(texts, st.dictionaries(texts, texts, min_size=1, max_size=3), max_size=4), texts)
def test_what_is_written_is_read_back(files: dict[str, dict[str, str]], commit: str) -> None:
    listed = [
        Benchmarked(file, name, call, commit) for file, ops in files.items() for name, call in ops.items()
    ]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.toml"
        path.write_text(write(listed), encoding="utf-8")
        assert read(path) == listed


@pytest.mark.parametrize("text", ["a = 1\n", "[a]\ncommit = 'x'\n", "[a]\n[a.ops]\nb = 'c'\n", "not toml"])
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"list\.toml"):
        read(path)


def test_the_suites_list_is_whole() -> None:
    listed = read(SUITE / "operator_benchmark.toml")
    assert len({each.key for each in listed}) == len(listed)
    unary = {each.name: each.call for each in listed if each.file == "unary_test"}
    assert len(unary) > 60 and unary["cos"] == "torch.cos"
    assert {"add_test", "qconv_test", "conv_test", "where_test"} <= {each.file for each in listed}
    assert write(listed) == (SUITE / "operator_benchmark.toml").read_text(encoding="utf-8")
