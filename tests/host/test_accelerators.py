"""GPUs of the other makers, and what the bus shows."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import accelerators
from tests.host.machines import plant

AMD_SMI = [
    {
        "gpu": 0,
        "asic": {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942"},
        "driver": {"name": "amdgpu", "version": "6.12.12"},
        "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}},
    }
]
MI300X = {
    "vendor": "AMD",
    "index": 0,
    "name": "AMD Instinct MI300X",
    "memory_bytes": 196592 << 20,
    "driver": "6.12.12",
    "architecture": "gfx942",
}
ROCM_SMI = {
    "card0": {
        "VRAM Total Memory (B)": "17163091968",
        "VRAM Total Used Memory (B)": "1048576",
        "Card Series": "Radeon RX 6800",
        "GFX Version": "gfx1030",
    },
    "system": {"Driver version": "6.3.6"},
}
APPLE = {
    "SPDisplaysDataType": [
        {
            "_name": "Apple M2 Ultra",
            "sppci_model": "Apple M2 Ultra",
            "sppci_cores": "76",
            "spdisplays_vendor": "sppci_vendor_Apple",
            "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
        },
        {"sppci_model": "AMD Radeon Pro 5500M", "spdisplays_vendor": "sppci_vendor_amd"},
    ]
}


def test_amd_smi_in_both_of_its_shapes() -> None:
    assert accelerators.parse_amd_smi(json.dumps(AMD_SMI)) == [MI300X]
    assert accelerators.parse_amd_smi(json.dumps({"gpu_data": AMD_SMI})) == [MI300X]


def test_rocm_smi() -> None:
    assert accelerators.parse_rocm_smi(json.dumps(ROCM_SMI)) == [
        {
            "vendor": "AMD",
            "index": 0,
            "name": "Radeon RX 6800",
            "memory_bytes": 17163091968,
            "memory_used_bytes": 1048576,
            "driver": "6.3.6",
            "architecture": "gfx1030",
        }
    ]


def test_apples_own_gpu_shares_the_machines_memory() -> None:
    assert accelerators.parse_system_profiler(json.dumps(APPLE), 64 << 30) == [
        {
            "vendor": "Apple",
            "index": 0,
            "name": "Apple M2 Ultra",
            "memory_bytes": 64 << 30,
            "cores": 76,
            "metal": "metal3",
        }
    ]


def test_the_bus(tmp_path: Path) -> None:
    devices = "sys/bus/pci/devices"
    root = plant(
        tmp_path,
        {
            f"{devices}/0000:00:02.0/class": "0x030000\n",
            f"{devices}/0000:00:02.0/vendor": "0x8086\n",
            f"{devices}/0000:00:06.0/class": "0x030200\n",
            f"{devices}/0000:00:06.0/vendor": "0x10de\n",
            f"{devices}/0000:02:00.0/class": "0x020000\n",
            f"{devices}/0000:02:00.0/vendor": "0x10de\n",
            f"{devices}/0000:03:00.0/class": "nonsense\n",
            "sys/bus/pci/drivers/i915/uevent": "",
        },
    )
    (root / devices / "0000:00:02.0/driver").symlink_to(root / "sys/bus/pci/drivers/i915")
    assert accelerators.pci_display_controllers(root) == [
        {"vendor": "Intel", "driver": "i915", "integrated": True},
        {"vendor": "NVIDIA", "driver": None, "integrated": False},
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["gpu_data", "asic", "market_name", "vram", "size", "value", "card0", "SPDisplaysDataType"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(_JSON.map(json.dumps) | st.text())
def test_garbage_never_raises(text: str) -> None:
    accelerators.parse_amd_smi(text)
    accelerators.parse_rocm_smi(text)
    accelerators.parse_system_profiler(text, None)
