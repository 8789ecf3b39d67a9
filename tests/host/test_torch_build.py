"""Facts of a torch build, from its own texts and from the installed one."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accel_micro import host
from accel_micro.host import torch_build

MKL_CPU = """PyTorch built with:
  - GCC 13.3
  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64 architecture
  - Intel(R) MKL-DNN v3.12.0 (Git Hash 80afa71049cd69a3df32adcccb623b12cd7baa22)
  - OpenMP 201511 (a.k.a. OpenMP 4.5)
  - CPU capability usage: AVX512
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, CXX_FLAGS= -O2 -fPIC, USE_CUDA=0, USE_MKLDNN=ON,
"""
CUDA = MKL_CPU + "  - CUDA Runtime 12.6\n  - CuDNN 90.5.1  (built against CUDA 12.4)\n"
APPLE = """PyTorch built with:
  - LAPACK is enabled (usually provided by MKL)
  - Build settings: BLAS_INFO=accelerate, BUILD_TYPE=Release,"""
ARM = "PyTorch built with:\n  - Build settings: BLAS_INFO=open, USE_MKLDNN=ON, USE_MKLDNN_ACL=ON,"


def test_config() -> None:
    found = torch_build.parse_config(CUDA)
    assert found["mkl"] == "2024.2"
    assert found["onednn"] == "3.12.0"
    assert found["blas"] == "MKL"
    assert found["cpu_capability"] == "AVX512"
    assert found["build_type"] == "Release"
    assert found["use_mkldnn"] == "ON"
    assert found["cuda_runtime"] == "12.6"
    assert found["cudnn"] == "90.5.1"


@pytest.mark.parametrize(("text", "blas"), [(MKL_CPU, "MKL"), (APPLE, "Accelerate"), (ARM, "OpenBLAS")])
def test_blas(text: str, blas: str) -> None:
    assert torch_build.parse_config(text)["blas"] == blas


def test_parallel_backend() -> None:
    assert torch_build.parse_parallel("ATen parallel backend: native thread pool\n") == "native thread pool"
    assert torch_build.parse_parallel("") is None


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    torch_build.parse_config(text)
    torch_build.parse_parallel(text)


def test_facts_of_the_installed_torch() -> None:
    facts = host.torch_facts()
    assert facts["unread"] == {}
    assert json.loads(json.dumps(facts)) == facts
    assert facts["build"]["version"] == torch.__version__
    assert facts["threads"]["intra_op"] == torch.get_num_threads()
    assert facts["precision"]["float32_matmul"] == torch.get_float32_matmul_precision()
    assert not any("/" in str(value) for pool in facts["threads"]["pools"] for value in pool.values())


def test_a_torch_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    facts = host.torch_facts()
    assert "build" not in facts
    assert "ModuleNotFoundError" in facts["unread"]["build"]


def test_comparing_blas_leaves_the_threads_as_they_were() -> None:
    before = torch.get_num_threads()
    speeds = torch_build.compare_blas(size=64, rounds=2)
    assert torch.get_num_threads() == before
    assert speeds.keys() == {"torch", "numpy"}
    assert all(1e6 < flops < 1e13 for flops in speeds.values())
