import pytest

from accel_micro.builds.variants import chosen, machine_variants, variants_for


def nvidia(cuda: str, capability: str | None = "9.0") -> dict[str, object]:
    return {"vendor": "NVIDIA", "cuda_driver": cuda, "compute_capability": capability}


@pytest.mark.parametrize(
    ("devices", "first", "last"),
    [
        ([nvidia("13.2")], ["cu132", "cu131", "cu130", "cu129"], "cu118"),
        ([nvidia("12.6")], ["cu126", "cu125", "cu124"], "cu118"),
        ([nvidia("13.2"), nvidia("12.4")], ["cu124", "cu123"], "cu118"),
        ([nvidia("13.2", "7.0")], ["cu129", "cu128"], "cu118"),
        ([nvidia("13.2", None)], ["cu132"], "cu118"),
        ([nvidia("11.8")], ["cu118"], "cu118"),
        ([nvidia("11.4")], ["cpu"], "cpu"),
        ([{"vendor": "NVIDIA"}], ["cpu"], "cpu"),
        ([], ["cpu"], "cpu"),
    ],
)
def test_nvidia(devices: list[dict[str, object]], first: list[str], last: str) -> None:
    names = variants_for(devices, platform="linux").names
    assert list(names[: len(first)]) == first
    assert names[-1] == last
    assert len(set(names)) == len(names)


def test_every_cuda_that_torch_was_published_for_is_looked_for() -> None:
    published = {"cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132", "cu134"}
    assert published <= set(variants_for([nvidia("13.4")], platform="linux").names)


def test_other_makers() -> None:
    amd = [{"vendor": "AMD"}]
    assert variants_for(amd, platform="linux").names[:3] == ("rocm7.14", "rocm7.2", "rocm7.1")
    assert variants_for(amd, platform="linux", rocm_version="6.4.1").names[:2] == ("rocm6.4", "rocm6.3")
    intel = {"vendor": "Intel", "driver": "xe", "integrated": False}
    assert variants_for([], [intel], "linux").names == ("xpu",)
    assert variants_for([], [{**intel, "integrated": True}], "linux").names == ("cpu",)
    assert variants_for([], [{**intel, "driver": None}], "linux").names == ("cpu",)
    assert variants_for([{"vendor": "Apple"}], platform="darwin").names == ("cpu",)


def test_a_reason_is_given() -> None:
    assert variants_for([nvidia("13.2")], platform="linux").reason == "NVIDIA driver for CUDA 13.2"
    assert "older than CUDA 13 wants" in variants_for([nvidia("13.2", "6.1")], platform="linux").reason
    assert "too old" in variants_for([nvidia("10.2")], platform="linux").reason


def test_words_of_the_configuration() -> None:
    assert chosen("cu130, cpu").names == ("cu130", "cpu")
    assert chosen("auto") == machine_variants()
    assert machine_variants().names
