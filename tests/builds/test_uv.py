"""What uv's failures mean, told by what uv 0.13 printed."""

import pytest

from accel_micro.builds import uv

WHEEL = "torch @ http://127.0.0.1:8/nightly/torch/torch-2.15.0.dev20261102%2Bcpu-cp311-cp311-linux_x86_64.whl"
NAME = "torch-2.15.0.dev20261102%2Bcpu-cp311-cp311-linux_x86_64.whl"

TRUNCATED = f"""\
Using Python 3.11.7 environment at: v
error: Failed to download `{WHEEL}`
  cause: Request failed after 3 retries in 0.0s
  cause: Failed to read metadata: http://127.0.0.1:8/{NAME}
  cause: Failed to read from zip file
  cause: an upstream reader returned an error: unexpected end of file
  cause: unexpected end of file
"""

CUT = f"""\
error: Failed to download `{WHEEL}`
  cause: Request failed after 1 retry in 0.0s
  cause: Failed to read from zip file
  cause: error decoding response body
  cause: end of file before message length reached
"""

REFUSED = f"""\
error: Failed to download `{WHEEL}`
  cause: Failed to fetch: http://127.0.0.1:8/{NAME}
  cause: error sending request for url (http://127.0.0.1:8/{NAME})
  cause: Connection refused (os error 111)
"""

FULL = """\
error: Failed to download `numpy==2.4.6`
  cause: Failed to extract archive: numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl
  cause: failed to write to file `/small/cache/.tmpW/numpy/x.so`: No space left on device (os error 28)
"""

HASH = f"""\
error: Failed to download `{WHEEL}#sha256=73cb`
  cause: Hash mismatch for `{WHEEL}#sha256=73cb`

         Expected:
           sha256:73cb

         Computed:
           sha256:3d66
"""

PINS = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of triton{sys_platform == 'linux'}==3.9.0+git1 and torch==2.15.0+cpu depends on \
triton{sys_platform == 'linux'}==3.9.0+git1, we can conclude that torch==2.15.0+cpu cannot be used.
         And because only torch==2.15.0+cpu is available and you require torch, we can conclude that your \
requirements are unsatisfiable.

hint: Pre-releases are available
"""

DEPENDENCY = """\
error: Failed to download `numpy==2.4.6`
  cause: Failed to extract archive: numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl
  cause: Bad CRC (got 05d4ca4d, expected 19b166aa) for file: numpy/__init__.py
"""


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (TRUNCATED, uv.DefectiveFile,
         f"Failed to download {NAME}: Failed to read from zip file: unexpected end of file"),
        (CUT, uv.Unreachable,
         f"Failed to download {NAME}: error decoding response body: end of file before message length reached"),
        (REFUSED, uv.Unreachable,
         f"Failed to download {NAME}: error sending request for url (http://127.0.0.1:8/{NAME}): "
         "Connection refused (os error 111)"),
        (FULL, uv.DiskFull,
         "Failed to download `numpy==2.4.6`: Failed to extract archive: "
         "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl: failed to write to file `/small/cache/.tmpW/numpy/x.so`: "
         "No space left on device (os error 28)"),
        (HASH, uv.DefectiveFile,
         f"Failed to download {NAME}: Hash mismatch for {NAME} Expected: sha256:73cb Computed: sha256:3d66"),
        (DEPENDENCY, uv.DefectiveFile,
         "Failed to download `numpy==2.4.6`: Failed to extract archive: "
         "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl: "
         "Bad CRC (got 05d4ca4d, expected 19b166aa) for file: numpy/__init__.py"),
        ("panic", uv.UvError, "panic"),
        ("", uv.UvError, "uv said nothing"),
    ],
)  # fmt: skip
def test_failures_in_words(output: str, kind: type[uv.UvError], message: str) -> None:
    error = uv._error(output)
    assert type(error) is kind
    assert str(error) == message


def test_a_defect_is_of_the_file_it_names() -> None:
    for output, project, expected in [(TRUNCATED, "torch", True), (DEPENDENCY, "torch", False)]:
        error = uv._error(output)
        assert isinstance(error, uv.DefectiveFile)
        assert error.is_of(project) == expected


def test_pins_of_torch_are_read_off() -> None:
    error = uv._error(PINS)
    assert isinstance(error, uv.Unresolvable)
    assert error.pins_of_torch() == ["triton"]
    assert str(error).endswith("requirements are unsatisfiable.")


def test_the_user_s_settings_pass_through(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", "wheels")
    monkeypatch.setenv("VIRTUAL_ENV", "elsewhere")
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.delenv("UV_LINK_MODE", raising=False)
    variables = uv.Uv().variables()
    assert variables["UV_FIND_LINKS"] == "wheels"
    assert variables["UV_LINK_MODE"] == "hardlink"
    assert "VIRTUAL_ENV" not in variables
    assert "UV_CACHE_DIR" not in variables
    monkeypatch.setenv("UV_CACHE_DIR", "chosen")
    assert not uv.Uv().own_cache
