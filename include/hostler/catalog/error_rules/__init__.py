"""What a cloud's refusal means: tables of facts per cloud, rules of shape, and one function that applies them."""

from hostler.catalog.error_rules.explaining import Explanation, explain

__all__ = ["Explanation", "explain"]
