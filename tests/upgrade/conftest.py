from tests.stores.conftest import bare_url

__all__ = ["bare_url"]
