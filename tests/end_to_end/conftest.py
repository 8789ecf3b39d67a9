from tests.asv_plugin.conftest import suite

__all__ = ["suite"]
